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

// Config says which ClickHouse to ask and how much a query may take from it. The zero value of each
// field but DSN stands for its default.
type Config struct {
	// The servers, as a DSN: clickhouse:// or tcp:// speak the native protocol, http:// and https:// the HTTP
	// interface. Several hosts are separated by commas. See dsnOptions for the options.
	DSN string
	// The longest a query may run. Default: 60s.
	MaxExecutionTime time.Duration
	// The most memory a query may take on the server, in bytes. Default: 4 GiB.
	MaxMemory int64
	// The most rows a query may return. Default: 1,000,000.
	MaxResultRows int64
	// The most bytes a query may return, uncompressed, and as JSON. One row never has more than MaxRowBytes. Default: 1 GiB.
	MaxResultBytes int64
	// How many queries may run at once, which is the size of the connection pool. Default: 20.
	Concurrency int
	// How long to wait for a connection, dialled or from the pool. Default: 10s.
	DialTimeout time.Duration
	// The server is the embedded engine: whoever runs it says when it is away, and the client does not.
	Embedded bool
	// The embedded engine may set priorities of its threads. Without, queries that yield get half of the cores at most.
	Priorities bool
	// Opens a connection to host:port. Default: a plain or TLS dial, as the DSN says.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// dsnOptions are the options that a DSN may carry after its question mark. Engine settings are not among
// them: what a query may do is decided here, not by the DSN.
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
	c.DialTimeout = cmp.Or(c.DialTimeout, 10*time.Second)
	return c
}

// Validate reports the first thing in the configuration that cannot work. It opens no connection, and its
// errors never hold the DSN's password.
func (c Config) Validate() error {
	_, err := c.options()
	return err
}

// options reads the DSN. The driver takes any option that it does not know for an engine setting, so that a
// typing mistake would reach the server with every query; here it is an error.
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
	// A query is silent until its first row, so the read timeout has to outlast the longest query.
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
		return "", errors.New("no ClickHouse DSN is given")
	}
	scheme, rest, ok := strings.Cut(dsn, "://")
	if !ok {
		return "", errors.New("the ClickHouse DSN has no scheme: it should look like clickhouse://user:password@host:9000/database")
	}
	if !slices.Contains([]string{"clickhouse", "tcp", "http", "https"}, scheme) {
		return "", fmt.Errorf("the ClickHouse DSN has the scheme %q; known are clickhouse, tcp, http and https", scheme)
	}
	_, query, _ := strings.Cut(rest, "?")
	options, err := url.ParseQuery(query)
	if err != nil {
		return "", errors.New("the options of the ClickHouse DSN are not well formed; escape special characters in them")
	}
	for name := range options {
		if !slices.Contains(dsnOptions, name) {
			return "", fmt.Errorf("the ClickHouse DSN has an unknown option %q; known are %s", name, strings.Join(dsnOptions, ", "))
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
