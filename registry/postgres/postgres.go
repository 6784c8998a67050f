// Package postgres keeps the registry in a PostgreSQL database (version 13 or later), which many nodes share.
//
// Writers take turns by locking one row, which also counts the revision, so that readers see revisions in order. A commit is acknowledged when it is on the
// server's disk, whatever its synchronous_commit says.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Schemes are the schemes of this store's DSNs.
var Schemes = []string{"postgres", "postgresql"}

const (
	// patience is how long a small statement, or a write, may take.
	patience = 5 * time.Second
	// longPatience is how long reading or writing much may take.
	longPatience = 2 * time.Minute
	// connectTimeout is how long a connection to one server may take if the DSN has no connect_timeout.
	connectTimeout = 3 * time.Second
	// pingTimeout is how long an idle connection of the pool may take to show that it works.
	pingTimeout = time.Second
)

// settings are what sessions begin with, unless the DSN says otherwise. The lock of a machine that is gone is freed after 25 seconds, and a write that its node
// does not continue ends after 10. Waiting for a lock ends before patience does: a lock that others have is not an outage.
var settings = map[string]string{
	"application_name":                    "caddy-analytics",
	"tcp_keepalives_idle":                 "10",
	"tcp_keepalives_interval":             "5",
	"tcp_keepalives_count":                "3",
	"idle_in_transaction_session_timeout": "10s",
	"lock_timeout":                        "4s",
	"client_encoding":                     "UTF8",
}

func init() {
	for _, scheme := range Schemes {
		registry.RegisterStore(registry.StoreType{
			Scheme:  scheme,
			Open:    func(ctx context.Context, dsn, _ string) (registry.Store, error) { return Open(ctx, dsn) },
			Inspect: func(ctx context.Context, dsn, _ string) (registry.StoreState, error) { return inspect(ctx, dsn) },
			Check: func(dsn string) error {
				_, err := parse(dsn)
				return err
			},
		})
	}
}

// Store is a registry.Store in a PostgreSQL database.
type Store struct {
	pool    *pgxpool.Pool
	session *pgx.ConnConfig // of connections outside of the pool
	schema  string          // of the tables
	id      string          // of this store, in its notifications
	away    breaker

	ctx  context.Context // of background work
	stop context.CancelFunc

	locks  *locks
	shares shares
}

// Open opens the database of a DSN, and upgrades its tables. A database that a newer version of this program has written is refused; one that can't be reached
// now is registry.ErrUnavailable.
func Open(ctx context.Context, dsn string) (_ *Store, err error) {
	config, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	s := &Store{session: config.ConnConfig, id: newID()}
	dial := s.session.DialFunc
	s.session.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &listened{conn, &s.away.heard}, nil
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("opening the registry: %w", err)
	}
	s.locks = &locks{store: s, turns: make(map[string]chan struct{}), used: make(map[string]int64), held: make(map[string]int64), doubted: make(map[string]bool)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if s.schema, err = migrate(ctx, config.ConnConfig); err != nil {
		s.stop()
		s.pool.Close()
		return nil, fmt.Errorf("opening the registry %s: %w", nameOf(config.ConnConfig), openError(err))
	}
	return s, nil
}

// Close closes all connections, which frees all locks.
func (s *Store) Close() error {
	s.stop()
	s.shares.close()
	s.away.close()
	s.locks.close()
	s.pool.Close()
	return nil
}

// plainName is a name that needs no quotes.
var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// parse reads a DSN. Its error holds no password.
func parse(dsn string) (*pgxpool.Config, error) {
	given, err := url.Parse(dsn)
	if err != nil {
		return nil, errors.New("a registry in PostgreSQL is given as postgres://USER:PASSWORD@HOST/DATABASE, and special characters in it as %XX")
	}
	if given.Scheme != Schemes[0] && given.Scheme != Schemes[1] {
		return nil, errors.New("a registry in PostgreSQL is given as postgres://USER:PASSWORD@HOST/DATABASE")
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("the registry's postgres:// DSN is not valid: %s", harmless(err, given))
	}
	session := config.ConnConfig
	if schema, ok := session.RuntimeParams["search_path"]; ok && !plainName.MatchString(schema) {
		return nil, errors.New("the search_path of the registry's DSN has to be the name of one schema, of lower case letters, digits and underscores")
	}
	if mode := session.DefaultQueryExecMode; mode != pgx.QueryExecModeCacheStatement && mode != pgx.QueryExecModeCacheDescribe && mode != pgx.QueryExecModeDescribeExec {
		return nil, errors.New("the default_query_exec_mode of the registry's DSN has to be cache_statement, cache_describe or describe_exec")
	}
	for name, value := range settings {
		if _, ok := session.RuntimeParams[name]; !ok {
			session.RuntimeParams[name] = value
		}
	}
	if session.ConnectTimeout == 0 {
		session.ConnectTimeout = connectTimeout
	}
	if config.PingTimeout == 0 {
		config.PingTimeout = pingTimeout
	}
	if session.ValidateConnect == nil { // a standby takes no writes
		session.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	session.DialFunc = (&net.Dialer{
		Timeout: session.ConnectTimeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3},
	}).DialContext
	session.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		return conn.Exec(ctx, waitForDisk).Close()
	}
	return config, nil
}

// waitForDisk makes commits wait for the disk. It also sets a value that is right already, so that a change of the server's config does not reach the session.
const waitForDisk = `SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)`

// harmless says what is wrong with a DSN, without any part of it that may be secret.
func harmless(err error, given *url.URL) string {
	_, text, _ := strings.Cut(err.Error(), "`: ")
	password, _ := given.User.Password()
	secrets := []string{given.String(), given.User.String(), password}
	for name, values := range given.Query() {
		if strings.Contains(name, "password") {
			secrets = append(secrets, values...)
		}
	}
	for _, secret := range secrets {
		if secret != "" && (strings.Contains(text, secret) || strings.Contains(text, url.QueryEscape(secret)) || strings.Contains(text, strconv.Quote(secret))) {
			text = ""
		}
	}
	if text == "" {
		return "an option of it can't be read"
	}
	return text
}

// nameOf names a database in messages, without the password.
func nameOf(c *pgx.ConnConfig) string {
	return (&url.URL{Scheme: Schemes[0], Host: net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), Path: "/" + c.Database}).String()
}
