package clickhouse_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

func TestConfig(t *testing.T) {
	const known = "block_buffer_size, compress, compress_level, conn_max_lifetime, connection_open_strategy, database, dial_timeout, " +
		"hosts, alt_hosts, http_path, http_proxy, max_compression_buffer, password, read_timeout, secure, skip_verify, tls_server_name, username"
	const unescaped = "the ClickHouse DSN has a # or, after a ?, an @: escape these characters in the password and in options (%23, %3F and %40)"
	tests := []struct {
		name   string
		config clickhouse.Config
		want   string
	}{
		{"native", clickhouse.Config{DSN: "clickhouse://user:secret@ch1:9000/analytics"}, ""},
		{"several hosts, TLS", clickhouse.Config{DSN: "clickhouse://user:secret@ch1:9440,ch2:9440/analytics?secure=true"}, ""},
		{"tcp", clickhouse.Config{DSN: "tcp://ch1:9000"}, ""},
		{"http", clickhouse.Config{DSN: "http://ch1:8123/analytics?dial_timeout=2s"}, ""},
		{"https", clickhouse.Config{DSN: "https://ch1:8443/analytics"}, ""},
		{"https with options", clickhouse.Config{DSN: "https://ch1:8443/analytics?skip_verify=true"}, ""},
		{"limits", clickhouse.Config{DSN: "http://ch1:8123", MaxExecutionTime: time.Second, MaxMemory: 1, Concurrency: 3}, ""},
		{"empty", clickhouse.Config{}, "the ClickHouse DSN is missing"},
		{"no scheme", clickhouse.Config{DSN: "ch1:9000"}, "the ClickHouse DSN has no scheme (want, for example, clickhouse://user:password@host:9000/database)"},
		{"unknown scheme", clickhouse.Config{DSN: "mysql://ch1"}, `the ClickHouse DSN has an unknown scheme "mysql" (want clickhouse, tcp, http or https)`},
		{"unknown option", clickhouse.Config{DSN: "clickhouse://u:secret@ch1:9000/?readonly=0"}, "the ClickHouse DSN has an unknown option (want one of " + known + ")"},
		{"no host", clickhouse.Config{DSN: "clickhouse:///db"}, "reading the ClickHouse DSN: parse dsn address failed"},
		{"a bad value", clickhouse.Config{DSN: "clickhouse://u:secret@ch1:9000/?dial_timeout=soon"}, `reading the ClickHouse DSN: clickhouse [dsn parse]: dial timeout: time: invalid duration "soon"`},
		{"a bad escape", clickhouse.Config{DSN: "clickhouse://u:secret@ch1:9000/?password=%zz"}, "the options of the ClickHouse DSN are malformed; escape special characters in them"},
		{"a password with a question mark", clickhouse.Config{DSN: "clickhouse://u:x?secret@ch1:9000/db"}, unescaped},
		{"a password with options", clickhouse.Config{DSN: "clickhouse://u:x?secure=secret@ch1:9000/db"}, unescaped},
		{"a password with a hash", clickhouse.Config{DSN: "clickhouse://u:x#secret@ch1:9000/db"}, unescaped},
		{"a password with a slash", clickhouse.Config{DSN: "clickhouse://u:x/secret@ch1:9000/db"}, "reading the ClickHouse DSN: parse \"clickhouse://u:xxxxx@ch1:9000/db\": " +
			"invalid URL (details hidden because they may contain credentials; URL-encode the username, password and http_proxy values)"},
		{"an option with a hash", clickhouse.Config{DSN: "clickhouse://ch1:9000/db?password=x#secret"}, unescaped},
		{"options with an @", clickhouse.Config{DSN: "clickhouse://ch1:9000/db?username=a@b&password=p@ss"}, ""},
		{"an option with an @ after the user", clickhouse.Config{DSN: "http://u:x@ch1:8123?http_proxy=http://u:p@proxy:3128"}, ""},
		{"escaped", clickhouse.Config{DSN: "clickhouse://u:x%3F%23%40secret@ch1:9000/db?password=x%23%40"}, ""},
		{"a password with an ampersand", clickhouse.Config{DSN: "clickhouse://ch1:9000/db?password=x&secret"}, "the ClickHouse DSN has an unknown option (want one of " + known + ")"},
		{"negative", clickhouse.Config{DSN: "http://ch1:8123", MaxMemory: -1}, "the limit of memory is negative"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := tt.config.Validate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if strings.Contains(got, "secret") {
				t.Error("the error contains the password")
			}
		})
	}
}

// TestPlace compares the places of configs.
func TestPlace(t *testing.T) {
	const dsn = "clickhouse://user:secret@ch1:9000,ch2:9000/analytics"
	tests := []struct {
		name   string
		config clickhouse.Config
		same   bool
	}{
		{"of another user", clickhouse.Config{DSN: "clickhouse://other:password@ch1:9000,ch2:9000/analytics"}, true},
		{"of the hosts in another order", clickhouse.Config{DSN: "clickhouse://CH2:9000,ch1:9000/analytics"}, true},
		{"of other limits", clickhouse.Config{DSN: dsn + "?dial_timeout=2s", MaxMemory: 1}, true},
		{"of other hosts", clickhouse.Config{DSN: "clickhouse://ch1:9000,ch3:9000/analytics"}, false},
		{"of another port", clickhouse.Config{DSN: "clickhouse://ch1:9001,ch2:9000/analytics"}, false},
		{"of another database", clickhouse.Config{DSN: "clickhouse://ch1:9000,ch2:9000/other"}, false},
		{"of a cluster", clickhouse.Config{DSN: dsn, Cluster: "c"}, false},
	}
	want, err := clickhouse.Config{DSN: dsn}.Place()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(want, "secret") {
		t.Errorf("the place has the password: %s", want)
	}
	for _, tt := range tests {
		if got, err := tt.config.Place(); err != nil || (got == want) != tt.same {
			t.Errorf("%s: %s, %v; that of the first is %s", tt.name, got, err, want)
		}
	}
	if got, err := (clickhouse.Config{}).Place(); err == nil {
		t.Errorf("the place of nothing is %s", got)
	}
}
