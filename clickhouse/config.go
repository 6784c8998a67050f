package clickhouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
)

// Config configures the ClickHouse servers and the limits of a query. Except for DSN, a zero field means
// its default.
type Config struct {
	// The servers, as a DSN: clickhouse:// and tcp:// use the native protocol, http:// and https:// the HTTP
	// interface. Separate several hosts with commas. See dsnOptions for the options.
	DSN string
	// The cluster whose servers get the tables, as replicated tables. Default: tables are created on one server.
	Cluster string
	// The number of clients that share the cluster: one per shard, with the hosts of that shard. Default: 1.
	Shards int
	// The maximum time of a query. Default: 60s.
	MaxExecutionTime time.Duration
	// The maximum memory of a query on the server, in bytes. Default: 4 GiB.
	MaxMemory int64
	// The maximum number of rows that a query may return. Default: 1,000,000.
	MaxResultRows int64
	// The maximum number of bytes that a query may return, uncompressed and as JSON. A row has at most MaxRowBytes. Default: 1 GiB.
	MaxResultBytes int64
	// The number of concurrent queries, which is the size of the connection pool. Default: 20.
	Concurrency int
	// How long to wait for a connection, dialed or from the pool. Default: 10s.
	DialTimeout time.Duration
	// The server is the embedded engine. The client does not log its outages, because package embedded does.
	Embedded bool
	// The embedded engine may set the priorities of its threads. If not, queries that yield get at most half of the cores.
	Priorities bool
	// Dials host:port. Default: a plain or TLS dial, depending on the DSN.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// dsnOptions are the options allowed in the query string of a DSN. ClickHouse settings are not among them:
// this package sets what a query may do.
var dsnOptions = []string{
	"block_buffer_size", "compress", "compress_level", "conn_max_lifetime", "connection_open_strategy", "database",
	"dial_timeout", "hosts", "alt_hosts", "http_path", "http_proxy", "max_compression_buffer", "password", "read_timeout",
	"secure", "skip_verify", "tls_server_name", "username",
}

func (c Config) withDefaults() Config {
	c.MaxExecutionTime = cmp.Or(c.MaxExecutionTime, time.Minute)
	c.MaxMemory = cmp.Or(c.MaxMemory, 4<<30)
	c.MaxResultRows = cmp.Or(c.MaxResultRows, 1_000_000)
	c.MaxResultBytes = cmp.Or(c.MaxResultBytes, 1<<30)
	c.Concurrency = cmp.Or(c.Concurrency, 20)
	c.Shards = cmp.Or(c.Shards, 1)
	c.DialTimeout = cmp.Or(c.DialTimeout, 10*time.Second)
	return c
}

// Validate returns an error for the first invalid value. It opens no connection, and its errors never contain
// the DSN's password.
func (c Config) Validate() error {
	_, err := c.options()
	return err
}

// Place identifies where the rows are: the database, the cluster, the hosts in any order and the path of the HTTP interface, without secrets.
// Different places may have different rows.
func (c Config) Place() (string, error) {
	o, err := c.options()
	if err != nil {
		return "", err
	}
	hosts := make([]string, len(o.Addr))
	for i, host := range o.Addr {
		hosts[i] = strings.ToLower(host)
	}
	slices.Sort(hosts)
	return fmt.Sprintf("%q %q %q %q", o.Auth.Database, c.Cluster, slices.Compact(hosts), o.HttpUrlPath), nil
}

// options parses the DSN. The driver treats unknown options as settings and would send a typo to the server with
// every query; here they are errors.
func (c Config) options() (*driver.Options, error) {
	c = c.withDefaults()
	for _, limit := range []struct {
		name  string
		value int64
	}{
		{"execution time", int64(c.MaxExecutionTime)},
		{"memory", c.MaxMemory},
		{"result rows", c.MaxResultRows},
		{"result bytes", c.MaxResultBytes},
		{"concurrency", int64(c.Concurrency)},
		{"dial timeout", int64(c.DialTimeout)},
	} {
		if limit.value < 0 {
			return nil, fmt.Errorf("the limit of %s is negative", limit.name)
		}
	}
	if c.Cluster != "" {
		if err := CheckCluster(c.Cluster); err != nil {
			return nil, err
		}
	}
	dsn, err := checkDSN(c.DSN)
	if err != nil {
		return nil, err
	}
	o, err := driver.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("reading the ClickHouse DSN: %w", err)
	}
	o.Auth.Database = cmp.Or(o.Auth.Database, "default")
	o.DialTimeout = cmp.Or(o.DialTimeout, c.DialTimeout)
	// A query sends nothing before its first row, so the read timeout has to exceed the maximum time of a query.
	o.ReadTimeout = cmp.Or(o.ReadTimeout, c.MaxExecutionTime+30*time.Second)
	o.MaxOpenConns = c.Concurrency
	o.MaxIdleConns = c.Concurrency
	o.ClientInfo = driver.ClientInfo{Products: []struct{ Name, Version string }{{Name: "caddy-analytics"}}}
	if c.Dial != nil {
		o.DialContext = c.Dial
	}
	return o, nil
}

func checkDSN(dsn string) (string, error) {
	if dsn == "" {
		return "", errors.New("the ClickHouse DSN is missing")
	}
	scheme, rest, ok := strings.Cut(dsn, "://")
	if !ok {
		return "", errors.New("the ClickHouse DSN has no scheme (want, for example, clickhouse://user:password@host:9000/database)")
	}
	if !slices.Contains([]string{"clickhouse", "tcp", "http", "https"}, scheme) {
		return "", fmt.Errorf("the ClickHouse DSN has an unknown scheme %q (want clickhouse, tcp, http or https)", scheme)
	}
	// Most likely the end of a password, which must not be quoted: after the user and after a path, an @ belongs to an option.
	place, query, _ := strings.Cut(rest, "?")
	if strings.Contains(rest, "#") || strings.Contains(query, "@") && !strings.ContainsAny(place, "@/") {
		return "", errors.New("the ClickHouse DSN has a # or, after a ?, an @: escape these characters in the password and in options (%23, %3F and %40)")
	}
	options, err := url.ParseQuery(query)
	if err != nil {
		return "", errors.New("the options of the ClickHouse DSN are malformed; escape special characters in them")
	}
	for name := range options {
		if !slices.Contains(dsnOptions, name) { // perhaps a part of a password
			return "", fmt.Errorf("the ClickHouse DSN has an unknown option (want one of %s)", strings.Join(dsnOptions, ", "))
		}
	}
	if scheme == "https" && !options.Has("secure") {
		separator := "?"
		if strings.Contains(dsn, "?") {
			separator = "&"
		}
		dsn += separator + "secure=true"
	}
	return dsn, nil
}
