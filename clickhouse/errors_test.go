package clickhouse_test

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
)

func TestErrors(t *testing.T) {
	type want = clickhouse.Error
	const (
		general    = "ClickHouse failed to run the query"
		unrunnable = "ClickHouse cannot run this query"
	)
	tests := []struct {
		name string
		code int32
		text string
		want want
	}{
		{"illegal_type_of_argument", 43, "Illegal type String of argument of function plus. (ILLEGAL_TYPE_OF_ARGUMENT)", want{Kind: clickhouse.UserError, Message: "Illegal type String of argument of function plus."}},
		{"no_common_type", 386, "There is no supertype for types UInt8, String because some of them are String/FixedString/Enum and some of them are not: In scope SELECT if(1, 1, 'a')", want{Kind: clickhouse.UserError, Message: "There is no supertype for types UInt8, String because some of them are String/FixedString/Enum and some of them are not."}},
		{"not_an_aggregate", 215, "Column `event` is not under aggregate function and not in GROUP BY keys. In query SELECT event FROM events", want{Kind: clickhouse.UserError, Message: "Column `event` is not under aggregate function and not in GROUP BY keys."}},
		{"not_an_aggregate", 215, "Column 'analytics.events.event' is not under aggregate function and not in GROUP BY keys. In query SELECT event FROM events", want{Kind: clickhouse.UserError, Message: "Column 'event' is not under aggregate function and not in GROUP BY keys."}},
		{"not_an_aggregate", 215, "Column 'analytics.events.`properties.a b`' is not under aggregate function and not in GROUP BY keys. In query SELECT 1", want{Kind: clickhouse.UserError, Message: "Column 'properties.a b' is not under aggregate function and not in GROUP BY keys."}},
		{"not_an_aggregate", 215, "Column 'analytics.events.`person_properties.is_bot.:\\`Bool\\``' is not under aggregate function and not in GROUP BY keys. In query SELECT 1", want{Kind: clickhouse.UserError, Message: "Column 'person.properties.is_bot' is not under aggregate function and not in GROUP BY keys."}},
		{"not_an_aggregate", 215, "Column 'events.properties__a' is not under aggregate function and not in GROUP BY keys. In query SELECT 1", want{Kind: clickhouse.UserError, Message: "Column 'properties.a' is not under aggregate function and not in GROUP BY keys."}},
		{"not_an_aggregate", 215, "Column 'analytics.events.`properties.my_properties__a`' is not under aggregate function and not in GROUP BY keys. In query SELECT 1", want{Kind: clickhouse.UserError, Message: "Column 'properties.my_properties__a' is not under aggregate function and not in GROUP BY keys."}},
		{"not_an_aggregate", 215, "Column 'events.person_properties__a__b' is not under aggregate function and not in GROUP BY keys. In query SELECT 1", want{Kind: clickhouse.UserError, Message: "Column 'person.properties.a.b' is not under aggregate function and not in GROUP BY keys."}},
		{"not_an_aggregate", 215, "Column 'q.s' is not under aggregate function and not in GROUP BY keys. In query SELECT 1", want{Kind: clickhouse.UserError, Message: "Column 'q.s' is not under aggregate function and not in GROUP BY keys."}},
		{"unknown_function", 46, "Function with name `sun` does not exist. Maybe you meant: ['sum'].", want{Kind: clickhouse.UserError, Message: "Function with name `sun` does not exist. Maybe you meant: ['sum']."}},
		{"type_mismatch", 53, "Cannot convert string abc to type UInt8: while executing 'FUNCTION equals'", want{Kind: clickhouse.UserError, Message: "Cannot convert string abc to type UInt8."}},
		{"unknown_type", 50, "Code: 50. DB::Exception: Internal type 'Nothing' of column 'a' is not supported for conversion into Parquet data format. (UNKNOWN_TYPE) (version 26.7.2.1)", want{Kind: clickhouse.UserError, Message: "Internal type 'Nothing' of column 'a' is not supported for conversion into Parquet data format."}},
		{"illegal_aggregation", 184, "Aggregate function count() is found inside another aggregate function in query. (ILLEGAL_AGGREGATION)", want{Kind: clickhouse.UserError, Message: "Aggregate function count() is found inside another aggregate function."}},
		{"number_of_arguments_doesnt_match", 42, "Number of arguments for function toString doesn't match: passed 0, should be 1 or 2", want{Kind: clickhouse.UserError, Message: "Number of arguments for function toString doesn't match: passed 0, should be 1 or 2."}},
		{"too_many_bytes", 307, "Limit for rows or bytes to read exceeded", want{Kind: clickhouse.UserError, Message: "Limit for rows or bytes to read exceeded."}},
		{"cannot_parse_uuid", 376, "Cannot parse UUID from String. Stack trace:\n\n0. DB::Exception::Exception at /build/src/Common/Exception.cpp", want{Kind: clickhouse.UserError, Message: "Cannot parse UUID from String."}},
		{"cannot_parse_bool", 467, "Cannot parse boolean value here: 'maybe', should be 'true' or 'false' (version 26.7.2.1 (official build))", want{Kind: clickhouse.UserError, Message: "Cannot parse boolean value here: 'maybe', should be 'true' or 'false'."}},
		{"invalid_join_on_expression", 403, "Cannot determine join keys in LEFT JOIN ... ON 1 = 2", want{Kind: clickhouse.UserError, Message: "Cannot determine join keys in LEFT JOIN ... ON 1 = 2."}},
		{"invalid_join_on_expression", 403, "Unsupported join ON conditions. Unexpected '__table1.number >= __table2.number'", want{Kind: clickhouse.UserError, Message: "LEFT, RIGHT and FULL JOIN need an equality between the two tables in ON; other conditions can only be added to it."}},
		{"unknown_table", 60, "Table default.x does not exist", want{Kind: clickhouse.UserError, Message: "Table default.x does not exist."}},
		{"unknown_table", 60, "Unknown table expression identifier 'x' in scope SELECT * FROM x", want{Kind: clickhouse.UserError, Message: "Unknown table expression identifier 'x'."}},
		{"cannot_parse_text", 6, "Cannot read /var/lib/clickhouse/store/a/data.bin", want{Kind: clickhouse.UserError, Message: "The query failed: cannot parse text."}},
		{"illegal_syntax_for_data_type", 62, "Syntax error (data type): failed at position 6 ((): (. Unmatched parentheses: (: In scope SELECT 1. (SYNTAX_ERROR)", want{Kind: clickhouse.UserError, Message: "Syntax error (data type): failed at position 6 ((): (. Unmatched parentheses: (."}},
		{"syntax_error", 62, "Syntax error: failed at position 8 (FROM): FROM events. (SYNTAX_ERROR)", want{Kind: clickhouse.Unrunnable, Message: unrunnable}},
		{"bad_arguments", 36, "Received from ch1.internal:9000. Bad thing", want{Kind: clickhouse.UserError, Message: "The query failed: bad arguments."}},
		{"bad_arguments", 36, "Wrong value on 10.1.2.3", want{Kind: clickhouse.UserError, Message: "The query failed: bad arguments."}},
		{"unknown_identifier", 47, "Unknown expression identifier `x` in scope SELECT x FROM events WHERE team_id = 7", want{Kind: clickhouse.UserError, Message: "Unknown expression identifier `x`."}},
		{"bad_type_of_field", 169, "Cannot compare std::__1::basic_string<char> with DB::DecimalField<DB::Decimal<long>>", want{Kind: clickhouse.UserError, Message: "The query failed: bad type of field."}},
		{"unknown_identifier", 47, "Identifier __table1.team_id cannot be resolved", want{Kind: clickhouse.UserError, Message: "The query failed: unknown identifier."}},
		{"illegal_division", 153, "Division by zero: while executing 'FUNCTION intDiv(1_UInt8, 0_UInt8)'", want{Kind: clickhouse.UserError, Message: "Division by zero."}},
		{"unknown_function", 46, "Code: 46. DB::Exception: Received from host:9000. DB::Exception: Function with name `f` does not exist.", want{Kind: clickhouse.UserError, Message: "Function with name `f` does not exist."}},
		{"timeout_exceeded", 159, "Timeout exceeded: elapsed 60.1 seconds, maximum: 60", want{Kind: clickhouse.Timeout, Message: "the query exceeded its time limit"}},
		{"too_slow", 160, "Estimated query execution time (700.5 seconds) is too long. Maximum: 600. Estimated rows to process: 1", want{Kind: clickhouse.TooSlow, Message: "Estimated query execution time (700.5 seconds) is too long."}},
		{"memory_limit_exceeded", 241, "Memory limit (for user) exceeded", want{Kind: clickhouse.Memory, Message: "the query ran out of memory"}},
		{"too_many_simultaneous_queries", 202, "Too many simultaneous queries. Maximum: 100", want{Kind: clickhouse.Busy, Message: "too many queries run at once"}},
		{"too_many_rows_or_bytes", 396, "Limit for result exceeded", want{Kind: clickhouse.TooLarge, Message: "the result exceeds its size limit"}},
		{"authentication_failed", 516, "default: Authentication failed", want{Kind: clickhouse.Unavailable, Message: "ClickHouse cannot be reached"}},
		{"network_error", 210, "Connection refused (ch2.internal:9000)", want{Kind: clickhouse.Unavailable, Message: "ClickHouse cannot be reached"}},
		{"logical_error", 49, "Logical error: SELECT * FROM events (LOGICAL_ERROR)", want{Kind: clickhouse.Unrunnable, Message: unrunnable}},
		{"not_found_column_in_block", 10, "Not found column count() in block. There are only columns: __table1.team_id", want{Kind: clickhouse.Unrunnable, Message: unrunnable}},
		{"hyperscan_cannot_scan_text", 447, "Pattern 'a{1,30000}' failed with error 'Bounded repeat is too large.'", want{Kind: clickhouse.UserError, Message: "Pattern 'a{1,30000}' failed with error 'Bounded repeat is too large.'."}},
		{"hyperscan_cannot_scan_text", 447, "Regular expression evaluation in vectorscan will be too slow. To ignore this error, disable setting 'reject_expensive_hyperscan_regexps'. (HYPERSCAN_CANNOT_SCAN_TEXT)", want{Kind: clickhouse.UserError, Message: "Regular expression evaluation in vectorscan will be too slow."}},
		{"incorrect_query", 80, "Function arrayMap is nested too deeply", want{Kind: clickhouse.UserError, Message: "Function arrayMap is nested too deeply."}},
		{"brand_new_error", 1234, "Something about /var/lib", want{Kind: clickhouse.Unrunnable, Message: unrunnable}},
		{"keeper_exception", 999, "Coordination error on keeper1:2181", want{Kind: clickhouse.Unavailable, Message: "ClickHouse cannot be reached"}},
		{"cannot_open_file", 76, "Cannot open /var/lib/clickhouse/x", want{Kind: clickhouse.Internal, Message: general}},
		{"database_access_denied", 291, "user: Not enough privileges (DATABASE_ACCESS_DENIED)", want{Kind: clickhouse.Unavailable, Message: "ClickHouse cannot be reached"}},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%d %.20s", tt.code, tt.text), func(t *testing.T) {
			cause := &driver.Exception{Code: tt.code, Message: tt.text}
			if tt.code == 1234 {
				cause.CodeName = "BRAND_NEW_ERROR"
			}
			got := clickhouse.Classify(fmt.Errorf("wrapped: %w", cause))
			tt.want.Code, tt.want.Name = int(tt.code), tt.name
			if diff := cmp.Diff(tt.want, *got, ignoreCause); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if !errors.Is(got, error(cause)) {
				t.Error("the driver's error is lost")
			}
		})
	}
}

// TestCodesAreComplete compares the table with the engine's own list, so that every code of the engine is
// classified.
func TestCodesAreComplete(t *testing.T) {
	listed := map[int32]string{}
	for kind, names := range clickhouse.Codes {
		for code, name := range names {
			if other, twice := listed[code]; twice {
				t.Errorf("%d is listed as %s and as %s (%v)", code, other, name, kind)
			}
			listed[code] = name
		}
	}
	conn := embeddedtest.Connect(t, engine.DSN())
	rows, err := conn.Query(t.Context(), "SELECT toInt32(number) AS n, lower(errorCodeToName(toUInt32(number))) AS name FROM numbers(1, 10000) WHERE name != ''")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	}()
	known := map[int32]string{}
	for rows.Next() {
		var code int32
		var name string
		if err := rows.Scan(&code, &name); err != nil {
			t.Fatal(err)
		}
		known[code] = name
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(known, listed); diff != "" {
		t.Errorf("codes (-engine +table):\n%s", diff)
	}
}

func TestReason(t *testing.T) {
	for text, want := range map[string]string{
		"Not found column 'alice@example.com' in block: In scope SELECT 'alice@example.com' FROM events": "Not found column '…' in block",
		"Bad 'it\\'s secret' and 'cut":               "Bad '…' and '…'",
		"Logical error: 'x'. Stack trace: 0. /build": "Logical error: '…'",
		strings.Repeat("ü", 400):                     strings.Repeat("ü", 250) + "…",
	} {
		if got := clickhouse.Classify(&driver.Exception{Code: 49, Message: text}).Reason(); got != want {
			t.Errorf("the reason of %q is %q, want %q", text, got, want)
		}
	}
}

func TestErrorsOfConnections(t *testing.T) {
	tests := []struct {
		err  error
		want clickhouse.ErrorKind
	}{
		{io.EOF, clickhouse.Unavailable},
		{io.ErrUnexpectedEOF, clickhouse.Unavailable},
		{driver.ErrAcquireConnTimeout, clickhouse.Busy},
		{fmt.Errorf("failed to query server hello: %w", driver.ErrAcquireConnTimeout), clickhouse.Unavailable},
		{driver.ErrAcquireConnNoAddress, clickhouse.Unavailable},
		{&driver.HTTPError{StatusCode: 503, Err: errEnough}, clickhouse.Unavailable},
		{&driver.HTTPError{StatusCode: 404, Err: errEnough}, clickhouse.Unavailable},
		{&url.Error{Op: "Post", Err: errors.New("http: server closed idle connection")}, clickhouse.Unavailable},
		{&url.Error{Op: "Post", Err: errEnough}, clickhouse.Internal},
		{errEnough, clickhouse.Internal},
	}
	for _, tt := range tests {
		if got := clickhouse.Classify(tt.err); got.Kind != tt.want {
			t.Errorf("%v is %v, want %v", tt.err, got.Kind, tt.want)
		}
	}
}
