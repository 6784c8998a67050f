package schema_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

func TestCheckArity(t *testing.T) {
	tests := []struct {
		name         string
		function     string
		args, params int
		want         string
	}{
		{"just enough", "round", 1, 0, ""},
		{"as many as allowed", "round", 2, 0, ""},
		{"any number", "concat", 200, 0, ""},
		{"too few of an exact number", "substring", 2, 0, "Function 'substring' expects 3 arguments, found 2"},
		{"too many of an exact number", "toYear", 2, 0, "Function 'toYear' expects 1 argument, found 2"},
		{"any argument where there is none", "pi", 1, 0, "Function 'pi' expects 0 arguments, found 1"},
		{"too few of a range", "concat", 1, 0, "Function 'concat' expects at least 2 arguments, found 1"},
		{"too few, one is the least", "round", 0, 0, "Function 'round' expects at least 1 argument, found 0"},
		{"too many of a range", "round", 3, 0, "Function 'round' expects at most 2 arguments, found 3"},
		{"an aggregate", "argMax", 1, 0, "Aggregation 'argMax' expects 2 arguments, found 1"},
		{"an aggregate with a combinator", "argMaxIf", 2, 0, "Aggregation 'argMaxIf' expects 3 arguments, found 2"},
		{"a parameter is missing", "quantile", 1, 0, "Aggregation 'quantile' expects 1 parameter, found 0"},
		{"a list of parameters is missing", "quantiles", 1, 0, "Aggregation 'quantiles' expects at least 1 parameter, found 0"},
		{"too many parameters", "groupArraySample", 1, 3, "Aggregation 'groupArraySample' expects at most 2 parameters, found 3"},
		{"parameters where there are none", "toYear", 1, 1, "Function 'toYear' expects 0 parameters, found 1"},
		{"parameters and arguments", "quantile", 1, 1, ""},
		{"an optional parameter", "groupUniqArrayArray", 1, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := lookup(t, tt.function).CheckArity(tt.args, tt.params); got != tt.want {
				t.Errorf("CheckArity(%d, %d) of %s = %q, want %q", tt.args, tt.params, tt.function, got, tt.want)
			}
		})
	}
}

// TestRows checks what the resolver and the printer rely on in every function.
func TestRows(t *testing.T) {
	legal := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	seen := make(map[string]bool)
	for f := range schema.Functions() {
		t.Run(f.Name, func(t *testing.T) {
			if seen[f.Name] {
				t.Error("has two rows")
			}
			seen[f.Name] = true
			if found, ok := schema.LookupFunction(f.Name); !ok || found != f {
				t.Errorf("LookupFunction finds %v", found)
			}
			if !legal.MatchString(f.Name) {
				t.Error("the name is no identifier")
			}
			if f.Family == "" {
				t.Error("has no family")
			}
			checkRange(t, "arguments", f.MinArgs, f.MaxArgs)
			checkRange(t, "parameters", f.MinParams, f.MaxParams)
			checkNative(t, f, legal)
			checkResult(t, f)
			checkRule(t, f)
			checkOperator(t, f)
		})
	}
}

func checkRange(t *testing.T, what string, low, high int) {
	t.Helper()
	if low < 0 || high != schema.Any && high < low {
		t.Errorf("%d to %d %s", low, high, what)
	}
}

func checkNative(t *testing.T, f *schema.Function, legal *regexp.Regexp) {
	t.Helper()
	if isMacro := f.Rule == schema.RuleMacro; isMacro != (f.Macro != "") || isMacro != (f.ClickHouse() == "") {
		t.Errorf("rule %d with macro %q and ClickHouse's name %q", f.Rule, f.Macro, f.ClickHouse())
	}
	if native := f.ClickHouse(); native != "" && (!legal.MatchString(native) || !schema.NativeFunction(native)) {
		t.Errorf("ClickHouse's name %q cannot be printed", native)
	}
	if f.Native == f.Name {
		t.Error("ClickHouse's name is given though it is the same")
	}
	for _, cast := range f.Casts {
		if cast != "" && !schema.NativeFunction(cast) {
			t.Errorf("the conversion %q cannot be printed", cast)
		}
	}
	if f.Zone > 0 && f.MaxArgs != schema.Any && f.Zone > f.MaxArgs+1 {
		t.Errorf("the zone is argument %d of at most %d", f.Zone, f.MaxArgs)
	}
	if f.WindowOnly && f.Aggregate {
		t.Error("is an aggregate and needs OVER")
	}
	if (f.Base != "" || len(f.Chains) > 0 || f.MaxParams != 0) && !f.Aggregate {
		t.Error("has combinators or parameters, and is no aggregate")
	}
}

func checkResult(t *testing.T, f *schema.Function) {
	t.Helper()
	r := f.Result
	set := 0
	for _, argument := range []int{r.Like, r.ElemOf, r.ArrayOf} {
		if argument != 0 {
			set++
		}
		if argument < 0 || f.MaxArgs != schema.Any && argument > f.MaxArgs {
			t.Errorf("the result follows argument %d of at most %d", argument, f.MaxArgs)
		}
	}
	if set > 1 {
		t.Error("the result follows several arguments")
	}
	if r.Elem != hogql.Unknown && r.Kind != hogql.ArrayKind {
		t.Error("has elements, and is no array")
	}
	if (r.Kind == hogql.ArrayKind || r.Kind == hogql.MapKind || r.Kind == hogql.State) && r.Nulls != schema.NullsNever {
		t.Error("arrays, maps and states cannot be NULL")
	}
}

// checkOperator checks the operator of an entry against its arguments, and against what the printer finds by ClickHouse's name.
func checkOperator(t *testing.T, f *schema.Function) {
	t.Helper()
	op := f.Operator
	if op == nil {
		return
	}
	if op.Operands < 1 || op.Operands > 2 || f.MinArgs != op.Operands {
		t.Errorf("an operator with %d operands for %d arguments", op.Operands, f.MinArgs)
	}
	if op.Level <= schema.LevelWhole || op.Level >= schema.LevelTight || op.Sign == "" {
		t.Errorf("the operator %+v has no sign or no level", *op)
	}
	if op.Set != (f.Rule == schema.RuleCompare && (f.Op == hogql.In || f.Op == hogql.NotIn)) {
		t.Errorf("the right operand is a set: %t", op.Set)
	}
	if found := schema.NativeOperator(f.ClickHouse()); found != op {
		t.Errorf("the printer finds the operator %v", found)
	}
}

// checkRule checks the fields of an entry that its rule requires.
func checkRule(t *testing.T, f *schema.Function) {
	t.Helper()
	if f.Conditional != (f.Aggregate && strings.HasSuffix(f.Name, "If")) {
		t.Errorf("the last argument is a condition: %t", f.Conditional)
	}
	if f.Gathers != schema.GathersNothing && (!f.Aggregate || f.Result.ArrayOf != 1) {
		t.Error("collects values, and is no aggregate that gives an array of its argument")
	}
	if f.Rule != schema.RuleCompare && f.Op != 0 || f.Rule != schema.RuleJSON && f.Path != 0 || f.Rule != schema.RuleLookup && f.Lookup != (schema.Lookup{}) {
		t.Error("has what only functions with another rule have")
	}
	if f.Rule == schema.RuleLookup && !f.Lookup.Kind && f.Lookup.In == nil {
		t.Error("looks nothing up")
	}
	if f.WholeDays && f.Result.Kind != hogql.IntervalKind || f.Reduces != nil && !f.Aggregate {
		t.Error("is no interval of days, or no aggregate to reduce by")
	}
	if (f.LambdaElems || f.LambdaFolds) && f.Rule != schema.RuleLambda {
		t.Error("takes no lambda")
	}
}

func TestExpand(t *testing.T) {
	at := hogql.Span{Start: 7, End: 9}
	for f := range schema.Functions() {
		if f.Rule != schema.RuleMacro {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			if f.MinArgs != f.MaxArgs {
				t.Fatal("a macro takes a fixed number of arguments")
			}
			args := make([]hogql.Expr, f.MaxArgs)
			found := make(map[hogql.Expr]int)
			for i := range args {
				args[i] = &hogql.Placeholder{}
			}
			hogql.WalkExpr(f.Expand(at, args, nil), func(e hogql.Expr) bool {
				if _, ok := e.(*hogql.Placeholder); ok {
					found[e]++
					return false
				}
				checkExpanded(t, e)
				if e.At() != at {
					t.Errorf("a %T has the place %v", e, e.At())
				}
				return true
			})
			for i, arg := range args {
				if found[arg] != 1 {
					t.Errorf("argument %d is used %d times", i+1, found[arg])
				}
			}
		})
	}
}

// checkExpanded checks one node made by a macro.
func checkExpanded(t *testing.T, e hogql.Expr) {
	t.Helper()
	if call, ok := e.(*hogql.Call); ok {
		if wrong := lookup(t, call.Name).CheckArity(len(call.Args), len(call.Params)); wrong != "" {
			t.Error(wrong)
		}
	}
	if lambda, ok := e.(*hogql.Lambda); ok {
		hogql.WalkExpr(lambda.Body, func(e hogql.Expr) bool {
			if _, ok := e.(*hogql.Placeholder); ok {
				t.Error("an argument is inside a lambda")
			}
			return true
		})
	}
}

func TestHidden(t *testing.T) {
	for f := range schema.Functions() {
		if got := f.Hidden(); got != strings.HasPrefix(f.Name, "_") {
			t.Errorf("Hidden() of %s = %t", f.Name, got)
		}
	}
}

func lookup(t *testing.T, name string) *schema.Function {
	t.Helper()
	f, ok := schema.LookupFunction(name)
	if !ok {
		t.Fatalf("no function %q", name)
	}
	return f
}
