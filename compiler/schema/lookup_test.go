package schema_test

import (
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

func TestLookupFunction(t *testing.T) {
	tests := []struct {
		name, in string
		want     string // the name of the function found; empty for none
		native   string
	}{
		{"as written", "toStartOfDay", "toStartOfDay", "toStartOfDay"},
		{"renamed", "toInt", "toInt", "accurateCastOrNull"},
		{"an alias", "date_trunc", "date_trunc", "dateTrunc"},
		{"case folded", "COUNT", "count", "count"},
		{"case folded, mixed", "IfNull", "ifNull", "ifNull"},
		{"a name that is never in lower case", "ISNULL", "isNull", "isNull"},
		{"case matters", "TOYEAR", "", ""},
		{"one combinator", "sumIf", "sumIf", "sumIf"},
		{"several combinators", "avgStateOrDefaultIf", "avgStateOrDefaultIf", "avgStateOrDefaultIf"},
		{"a renamed aggregate with a combinator", "countDistinctIf", "countDistinctIf", "uniqExactIf"},
		{"case matters with a combinator", "SUMIF", "", ""},
		{"a combinator that this aggregate does not take", "topKIf", "", ""},
		{"combinators in an order that is not allowed", "sumIfState", "", ""},
		{"a combinator twice", "sumIfIf", "", ""},
		{"a combinator on a scalar", "toYearIf", "", ""},
		{"a combinator alone", "If", "if", "if"},
		{"hidden", "_toInt64", "_toInt64", "toInt64"},
		{"empty", "", "", ""},
		{"endless", strings.Repeat("sum", 1<<20), "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, ok := schema.LookupFunction(tt.in)
			if !ok {
				f = &schema.Function{}
			}
			if ok != (tt.want != "") || f.Name != tt.want || f.ClickHouse() != tt.native {
				t.Errorf("LookupFunction(%.40q) = %q, compiled to %q; want %q, %q", tt.in, f.Name, f.ClickHouse(), tt.want, tt.native)
			}
		})
	}
}

func TestCombinatorArguments(t *testing.T) {
	tests := []struct {
		name             string
		minArgs, maxArgs int
		nulls            schema.Nulls
	}{
		{"countIf", 1, 2, schema.NullsNever},
		{"countArray", 1, 1, schema.NullsNever},
		{"countMerge", 1, 1, schema.NullsNever},
		{"countState", 0, 1, schema.NullsNever},
		{"sumIf", 2, 2, schema.NullsButLast},
		{"sumOrNull", 1, 1, schema.NullsAlways},
		{"sumOrNullIf", 2, 2, schema.NullsAlways},
		{"sumArgMax", 2, 2, schema.NullsPropagate},
		{"sumArgMaxIf", 3, 3, schema.NullsButLast},
		{"sumMerge", 1, 1, schema.NullsAlways},
		{"avgArray", 1, 1, schema.NullsAlways},
		{"covarPopIf", 3, 3, schema.NullsButLast},
		{"uniqIf", 2, schema.Any, schema.NullsNever},
		{"quantileIf", 2, 2, schema.NullsButLast},
		{"sumMap", 1, 2, schema.NullsNever},
		{"sumMapIf", 2, 3, schema.NullsNever},
		{"sumMapOrNull", 1, 1, schema.NullsNever},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := lookup(t, tt.name)
			if f.MinArgs != tt.minArgs || f.MaxArgs != tt.maxArgs || f.Result.Nulls != tt.nulls {
				t.Errorf("%s takes %d to %d arguments, NULLs %d; want %d to %d, %d", tt.name, f.MinArgs, f.MaxArgs, f.Result.Nulls,
					tt.minArgs, tt.maxArgs, tt.nulls)
			}
			if !f.Aggregate {
				t.Errorf("%s is no aggregate", tt.name)
			}
		})
	}
}

// TestCombinatorCount checks how many aggregates the seven basic ones form with all chains of combinators.
func TestCombinatorCount(t *testing.T) {
	const chains = 1 + 2*2 + 7*6 // If; OrDefault and OrNull, each alone and with If; seven others, alone and with five behind
	count := make(map[string]int)
	for f := range schema.Functions() {
		count[f.Base]++
	}
	// Entries in the table and longer bases (sumMapIf of sumMap) take precedence.
	for _, base := range []string{"count", "countDistinct", "avg", "median"} {
		taken := 0
		if base == "avg" {
			taken = 2 // avgMap, avgMapIf
		}
		if got := count[base]; got != chains-taken {
			t.Errorf("%s makes %d functions, want %d", base, got, chains-taken)
		}
	}
}

// TestFences lists ClickHouse functions that access something outside of the query, change something, or wait. None can be called, and none can be
// printed.
func TestFences(t *testing.T) {
	for name := range strings.FieldsSeq(`
		url file s3 hdfs remote remoteSecure cluster clusterAllReplicas mysql postgresql sqlite mongodb redis jdbc odbc executable
		input merge view generateRandom dictionary loop
		dictGet dictGetString dictGetOrDefault dictGetOrNull dictHas dictGetAll joinGet joinGetOrNull catboostEvaluate evalMLMethod
		sleep sleepEachRow throwIf aggThrow
		getSetting getSettingOrDefault getServerSetting getMacro getMergeTreeSetting getServerPort getClientHTTPHeader globalVariable
		hostName hostname fullHostName FQDN displayName version revision buildId uptime serverUUID serverTimezone timezoneOf tcpPort
		currentUser user authenticatedUser currentDatabase database currentProfiles currentRoles enabledRoles enabledProfiles
		currentQueryID queryID initialQueryID connectionId currentSchemas
		filesystemAvailable filesystemCapacity zookeeperSessionUptime hasColumnInTable hasThreadFuzzer blockNumber rowNumberInBlock rowNumberInAllBlocks tid logTrace
		transactionID transactionLatestSnapshot shardNum shardCount showCertificate getOSKernelVersion
		addressToLine addressToSymbol demangle
		generateUUIDv4 generateUUIDv7 generateSerialID generateSnowflakeID rand64 randomString fuzzBits
		initializeAggregation finalizeAggregation runningAccumulate formatRow formatQuery identity materialize ignore untuple
		encrypt decrypt aes_encrypt_mysql aes_decrypt_mysql aiGenerate aiClassify AIGenerate naiveBayesClassifier
		reinterpret CAST _CAST getSubcolumn structureToProtobufSchema arrayReduceInRanges mergeTreePartInfo`) {
		if f, ok := schema.LookupFunction(name); ok && f.Rule != schema.RuleMacro { // a macro only uses functions of the table
			t.Errorf("%s can be called, as %s", name, f.Name)
		}
		if schema.NativeFunction(name) {
			t.Errorf("%s can be printed", name)
		}
	}
}

func TestNativeFunction(t *testing.T) {
	tests := []struct {
		name string
		want bool
	}{
		{"toStartOfDay", true},
		{"accurateCastOrNull", true},
		{"uniqExactIf", true},
		{"now64", true},
		{"dynamicType", true},
		{"toUInt32", true}, // a conversion of arguments
		{"toInt", false},   // a name of HogQL's
		{"countDistinctIf", false},
		{"md5", false},
		{"COUNT", false},
		{"globalIn", false},
		{"", false},
	}
	for _, tt := range tests {
		if got := schema.NativeFunction(tt.name); got != tt.want {
			t.Errorf("NativeFunction(%q) = %t", tt.name, got)
		}
	}
}

// TestResolverNatives lists what the resolver writes without a call of that name, whether it comes from an entry or from the list of natives.
func TestResolverNatives(t *testing.T) {
	for name := range strings.FieldsSeq(`
		accurateCastOrNull assumeNotNull dynamicElement dynamicType toBool toJSONString toNullable toString toInt64 toFloat64
		and or not in notIn if multiIf transform isNull isNotNull ifNull nullIf coalesce
		JSONExtractRaw JSONExtractString JSONHas replaceRegexpAll
		now64 toTimeZone toDate toDateOrNull toDateTime toDateTime64 parseDateTime64BestEffort parseDateTime64BestEffortOrNull
		toIntervalSecond toIntervalMinute toIntervalHour toIntervalDay toIntervalWeek toIntervalMonth toIntervalQuarter toIntervalYear
		array arrayElement arraySlice arrayMap map tuple tupleElement length concat match min2 cityHash64
		argMax any count uniqExact lagInFrame leadInFrame`) {
		if !schema.NativeFunction(name) {
			t.Errorf("%s cannot be printed", name)
		}
	}
}

func TestReducibleBy(t *testing.T) {
	for name, want := range map[string]bool{
		"sum": true, "uniqMapState": true, "sumState": false, "sumIf": false, "groupArray": false, "SUM": false, "": false,
	} {
		if got := schema.ReducibleBy(name); got != want {
			t.Errorf("ReducibleBy(%q) = %t", name, got)
		}
	}
	for _, name := range schema.ReducingAggregates() {
		if !schema.ReducibleBy(name) {
			t.Errorf("ReducibleBy(%q) = false", name)
		}
	}
}

func TestLookupUnit(t *testing.T) {
	tests := []struct {
		in   string
		want schema.Unit
		ok   bool
	}{
		{"day", schema.Unit{Name: "day", Interval: "toIntervalDay", Part: "toDayOfMonth"}, true},
		{"DAYS", schema.Unit{Name: "day", Interval: "toIntervalDay", Part: "toDayOfMonth"}, true},
		{"Week", schema.Unit{Name: "week", Interval: "toIntervalWeek", Part: "toISOWeek", Long: true}, true},
		{"dow", schema.Unit{Name: "weekday", Part: "toDayOfWeek"}, true},
		{"days ago", schema.Unit{}, false},
		{"", schema.Unit{}, false},
		{strings.Repeat("day", 1<<20), schema.Unit{}, false},
	}
	for _, tt := range tests {
		if got, ok := schema.LookupUnit(tt.in); got != tt.want || ok != tt.ok {
			t.Errorf("LookupUnit(%.20q) = %+v, %t", tt.in, got, ok)
		}
	}
	for _, name := range []string{
		"microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "dow", "doy", "epoch",
	} {
		unit, _ := schema.LookupUnit(name)
		for _, native := range []string{unit.Interval, unit.Part} {
			if native != "" && !schema.NativeFunction(native) {
				t.Errorf("unit %s uses %s, which cannot be printed", name, native)
			}
		}
	}
}

func BenchmarkLookupFunction(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		for _, name := range []string{"toStartOfDay", "count", "sumStateOrDefaultIf", "nothing"} {
			schema.LookupFunction(name)
		}
	}
}
