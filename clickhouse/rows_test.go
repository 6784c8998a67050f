package clickhouse_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// TestValues pins the JSON form of each type, as printed by the server and as made from blocks.
func TestValues(t *testing.T) {
	tests := []struct{ name, sql, want string }{ // {"…", SELECT list, row}
		{"integers", "-128::Int8, 255::UInt8, -32768::Int16, 65535::UInt16, -2147483648::Int32, 4294967295::UInt32", `-128, 255, -32768, 65535, -2147483648, 4294967295`},
		{"64-bit integers are numbers", "toInt64('-9223372036854775808'), toUInt64('18446744073709551615')", `-9223372036854775808, 18446744073709551615`},
		{"wide integers", "toInt128('-5'), toUInt256('7')", `-5, 7`},
		{"floats", "1.5, 0.1::Float32, 1e20, 1e21, 1e300, 1e-6, 1e-7, 1.5e-9, -0., 123456789012345678901.", `1.5, 0.1, 100000000000000000000, 1e21, 1e300, 0.000001, 1e-7, 1.5e-9, -0, 123456789012345680000`},
		{"no numbers", "nan, inf, -inf, nan::Float32", `null, null, null, null`},
		{"decimals are strings", "toDecimal64('1.50', 4), toDecimal32('-0.07', 2), toDecimal128('12345678901234567890.5', 3), toDecimal64(3, 2)", `"1.5", "-0.07", "12345678901234567890.5", "3"`},
		{"booleans", "true, false, 1 = 1", `true, false, 1`},
		{"strings", `'a"b\\c/d', '\0\b\t\n\f\r\x1b\x1f\x7f', 'é😀', ''`, `"a\"b\\c/d", "\u0000\b\t\n\f\r\u001B\u001F` + "\x7f" + `", "é😀", ""`},
		{"line ends of JavaScript", "unhex('e280a8'), unhex('e280a9')", `"\u2028", "\u2029"`},
		{"bytes that are no text", "unhex('61ff62'), unhex('c328'), unhex('eda080')", `"a` + "\uFFFD" + `b", "` + "\uFFFD" + `(", "` + "\uFFFD" + `"`},
		{"fixed strings", "toFixedString('ab', 3)", `"ab\u0000"`},
		{"NULL", "NULL, CAST(NULL, 'Nullable(Int64)'), CAST('x', 'Nullable(String)')", `null, null, "x"`},
		{"low cardinality", "toLowCardinality('x'), CAST(NULL, 'LowCardinality(Nullable(String))'), CAST('y', 'LowCardinality(Nullable(String))')", `"x", null, "y"`},
		{"enums", "CAST('b', 'Enum8(\\'a\\' = 1, \\'b\\' = 2)'), CAST('ä,(', 'Enum16(\\'ä,(\\' = 1)')", `"b", "ä,("`},
		{"uuid", "toUUID('be349c38-5f7e-41eb-9f47-57f1fa0d45e8')", `"be349c38-5f7e-41eb-9f47-57f1fa0d45e8"`},
		{"addresses", "toIPv4('1.2.3.4'), toIPv6('::1'), toIPv6('::ffff:1.2.3.4'), toIPv6('2001:db8::1:0:0:1')", `"1.2.3.4", "::1", "::ffff:1.2.3.4", "2001:db8::1:0:0:1"`},
		{"dates", "toDate('2020-01-02'), toDate32('1925-01-02'), CAST(NULL, 'Nullable(Date)')", `"2020-01-02", "1925-01-02", null`},
		{"times in UTC", "toDateTime('2020-01-02 03:04:05'), toDateTime64('2020-01-02 03:04:05', 6, 'UTC'), toDateTime64('2020-01-02 03:04:05.000100', 6, 'UTC')", `"2020-01-02T03:04:05Z", "2020-01-02T03:04:05Z", "2020-01-02T03:04:05.000100Z"`},
		{"the zone of the session is UTC", "toDateTime('2020-01-02 03:04:05'), toDateTime64('2020-01-02 03:04:05', 3)", `"2020-01-02T03:04:05Z", "2020-01-02T03:04:05Z"`},
		{"milliseconds and nanoseconds", "toDateTime64('2020-01-02 03:04:05.12', 2, 'UTC'), toDateTime64('2020-01-02 03:04:05.123456789', 9, 'UTC'), toDateTime64('2020-01-02 03:04:05.000000001', 9, 'UTC')", `"2020-01-02T03:04:05.120000Z", "2020-01-02T03:04:05.123456Z", "2020-01-02T03:04:05Z"`},
		{"times with an offset", "toDateTime64('2020-07-02 03:04:05', 0, 'Europe/Berlin'), toDateTime64('2020-01-02 03:04:05.5', 6, 'America/New_York'), toDateTime64('2020-01-02 03:04:05', 3, 'Asia/Kathmandu')", `"2020-07-02T03:04:05+02:00", "2020-01-02T03:04:05.500000-05:00", "2020-01-02T03:04:05+05:45"`},
		{"an offset of zero is Z", "toDateTime64('2020-01-02 03:04:05', 0, 'Europe/London'), toDateTime64('2020-07-02 03:04:05', 0, 'Europe/London')", `"2020-01-02T03:04:05Z", "2020-07-02T03:04:05+01:00"`},
		{"the hour that clocks show twice", "toDateTime64(1603584000, 0, 'Europe/Berlin'), toDateTime64(1603587600, 0, 'Europe/Berlin'), toDateTime64(1603587600, 6, 'Europe/Berlin')", `"2020-10-25T02:00:00+02:00", "2020-10-25T02:00:00+01:00", "2020-10-25T02:00:00+01:00"`},
		{"before the epoch", "toDateTime64('1969-12-31 23:59:59.5', 6, 'UTC'), toDateTime64('1900-01-01 00:00:00', 6, 'UTC')", `"1969-12-31T23:59:59.500000Z", "1900-01-01T00:00:00Z"`},
		{"no time", "CAST(NULL, 'Nullable(DateTime64(6, \\'UTC\\'))'), CAST('2020-01-02 03:04:05', 'Nullable(DateTime64(3, \\'Europe/Berlin\\'))')", `null, "2020-01-02T03:04:05+01:00"`},
		{"intervals", "toIntervalDay(3), toIntervalMonth(-1)", `3, -1`},
		{"arrays", "[1, 2], ['a', 'b\"'], [NULL, 1], [[1], []], CAST([], 'Array(String)'), [toDate('2020-01-02')], [true]", `[1,2], ["a","b\""], [null,1], [[1],[]], [], ["2020-01-02"], [true]`},
		{"arrays of numbers", "[1.5, nan], [toUInt64('18446744073709551615')], [toDecimal32('1.50', 2)], [toInt128(3)], [toUUID('be349c38-5f7e-41eb-9f47-57f1fa0d45e8')], [toIPv4('1.2.3.4')], [toIPv6('::1')]", `[1.5,null], [18446744073709551615], ["1.5"], [3], ["be349c38-5f7e-41eb-9f47-57f1fa0d45e8"], ["1.2.3.4"], ["::1"]`},
		{"arrays of low cardinality", "[toLowCardinality('x'), 'y'], CAST(['x', NULL], 'Array(LowCardinality(Nullable(String)))')", `["x","y"], ["x",null]`},
		{"tuples are arrays", "(1, 'a', NULL), tuple(toDate('2020-01-02'), [1]), CAST((1, 'x'), 'Tuple(a Int8, b String)')", `[1,"a",null], ["2020-01-02",[1]], [1,"x"]`},
		{"tuples in arrays", "[(1, 'a'), (2, 'b')], CAST([(1, 'x')], 'Array(Tuple(z Int8, a String))'), ((1, (2, 'a')), 3)", `[[1,"a"],[2,"b"]], [[1,"x"]], [[1,[2,"a"]],3]`},
		{"maps", "map('b', 1, 'a', 2), map(1, ['x']), CAST(map(), 'Map(String, Int8)'), map('k', (1, 'x'))", `{"b":1,"a":2}, {"1":["x"]}, {}, {"k":[1,"x"]}`},
		{"times in arrays, tuples and maps", "[toDateTime64('2020-07-02 03:04:05', 6, 'Europe/Berlin')], (1, toDateTime64('2020-07-02 03:04:05', 0, 'Europe/Berlin')), map(toDateTime64('2020-07-02 03:04:05', 3, 'UTC'), 1), map('t', [toDateTime64('2020-07-02 03:04:05.1', 3, 'UTC')])", `["2020-07-02T03:04:05+02:00"], [1,"2020-07-02T03:04:05+02:00"], {"2020-07-02T03:04:05Z":1}, {"t":["2020-07-02T03:04:05.100000Z"]}`},
		{"text that looks like JSON", "toDateTime64('2020-07-02 03:04:05', 6, 'UTC'), '[\"],{}\\\\', 'a\\\\\"'", `"2020-07-02T03:04:05Z", "[\"],{}\\", "a\\\""`},
		{"JSON", `'{"a":1,"b":{"c":[1,2.5,"x"]},"d":"2020-01-01","e":true}'::JSON`, `{"a":1,"b":{"c":[1,2.5,"x"]},"d":"2020-01-01","e":true}`},
		{"variants and dynamic values", "CAST(5, 'Variant(UInt8, String)'), [CAST('x', 'Dynamic')]", `5, ["x"]`},
		{"maps in arrays keep their order", "[map('b', 1, 'a', 2)], (map('z', 1, 'y', 2), 1)", `[{"b":1,"a":2}], [{"z":1,"y":2},1]`},
		{"an expression over a table of numbers", "sum(number), avg(number), groupArray(number) FROM numbers(3)", `3, 1, [0,1,2]`},
	}
	c := client(t)
	p := project()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var printed, blocks rows
			q := clickhouse.Query{SQL: "SELECT " + tt.sql, Project: p}
			if _, err := c.Query(t.Context(), q, &printed); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"[" + tt.want + "]"}, printed.Texts); diff != "" {
				t.Errorf("rows as printed (-want +got):\n%s", diff)
			}
			if err := c.QueryBlocks(t.Context(), q, &blocks); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"[" + tt.want + "]"}, blocks.Texts); diff != "" {
				t.Errorf("rows from blocks (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(printed.Header, blocks.Header); diff != "" {
				t.Errorf("columns (-printed +blocks):\n%s", diff)
			}
		})
	}
}
