package hogql

var (
	binaryFunctions = [...]string{Plus: "plus", Minus: "minus", Multiply: "multiply", Divide: "divide", Modulo: "modulo"}

	// compareFunctions are the functions for comparisons; the others are handled where they are written.
	compareFunctions = map[CompareOp]string{
		Equals: "equals", NotEquals: "notEquals", Less: "less", LessOrEquals: "lessOrEquals", Greater: "greater",
		GreaterOrEquals: "greaterOrEquals", In: "in", NotIn: "notIn", Like: "like", NotLike: "notLike", ILike: "ilike",
		NotILike: "notILike", Match: "match",
	}

	intervalFunctions = map[string]string{
		"second": "toIntervalSecond", "minute": "toIntervalMinute", "hour": "toIntervalHour", "day": "toIntervalDay",
		"week": "toIntervalWeek", "month": "toIntervalMonth", "quarter": "toIntervalQuarter", "year": "toIntervalYear",
	}
)

// Function returns the name of the function that is equivalent to the operator.
func (op BinaryOp) Function() string { return binaryFunctions[op] }

// functionForm writes e as a function call if it is an operator; otherwise it writes nothing and returns false.
func (p *printer) functionForm(e Expr) bool {
	switch n := e.(type) {
	case *Unary:
		if n.Op == Not {
			p.call("not", []Expr{n.X})
		} else {
			p.call("minus", []Expr{&Const{Value: int64(0)}, n.X})
		}
	case *Binary:
		p.call(n.Op.Function(), []Expr{n.Left, n.Right})
	case *Compare:
		return p.compareFunction(n)
	case *Logic:
		if n.Or {
			p.call("or", n.Args)
		} else {
			p.call("and", n.Args)
		}
	case *Case:
		p.caseFunction(n)
	case *Cast:
		to, ok := CastTypes[n.Type]
		if !ok {
			return false
		}
		p.call(to.Function, []Expr{n.X})
	case *Tuple:
		p.call("tuple", n.Items)
	case *Dict:
		args := []Expr{&Const{Value: "__hx_tag"}, &Const{Value: "__hx_obj"}}
		for i, key := range n.Keys {
			args = append(args, key, n.Values[i])
		}
		p.call("tuple", args)
	case *Interval:
		p.call(intervalFunctions[n.Unit], []Expr{n.N})
	case *Const, *Field, *Star, *ColumnsMatching, *Call, *Between, *Array, *Lambda, *Index, *Slice, *Element, *Member,
		*Placeholder, *Subquery, *Alias:
		return false
	}
	return true
}

func (p *printer) compareFunction(n *Compare) bool {
	operands := []Expr{n.Left, n.Right}
	switch n.Op {
	case InCohort, NotInCohort:
		return false
	case NotMatch:
		p.put("not(")
		p.call("match", operands)
		p.put(")")
	case IMatch:
		p.foldMatch(n)
	case NotIMatch:
		p.put("not(")
		p.foldMatch(n)
		p.put(")")
	default:
		p.call(compareFunctions[n.Op], operands)
	}
	return true
}

// foldMatch writes the case-insensitive match.
func (p *printer) foldMatch(n *Compare) {
	pattern := &Call{Name: "concat", Args: []Expr{&Const{Value: "(?i)"}, n.Right}}
	p.call("match", []Expr{n.Left, pattern})
}

// caseFunction writes CASE as if, multiIf or transform. A missing ELSE is NULL.
func (p *printer) caseFunction(n *Case) {
	var otherwise Expr = &Const{}
	if n.Else != nil {
		otherwise = n.Else
	}
	if n.X != nil {
		from, to := new(Array), new(Array)
		for _, w := range n.Whens {
			from.Items = append(from.Items, w.If)
			to.Items = append(to.Items, w.Then)
		}
		p.call("transform", []Expr{n.X, from, to, otherwise})
		return
	}
	var args []Expr
	for _, w := range n.Whens {
		args = append(args, w.If, w.Then)
	}
	name := "if"
	if len(n.Whens) > 1 {
		name = "multiIf"
	}
	p.call(name, append(args, otherwise))
}
