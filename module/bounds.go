package module

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/alerts"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// CheckMaxSize reports what is wrong with the cache's size.
func CheckMaxSize(size Size) error { return atLeast(size, 1<<20) }

// CheckMaxMemory reports what is wrong with the memory limit of a query.
func CheckMaxMemory(size Size) error { return atLeast(size, 16<<20) }

// CheckRecordsSize reports what is wrong with the size limit for the records of a project.
func CheckRecordsSize(size Size) error { return atLeast(size, registry.MaxRecord) }

// CheckImportSize reports what is wrong with the size limit for imported files.
func CheckImportSize(size Size) error { return atLeast(size, 1<<20) }

// CheckBuffer reports what is wrong with the size of the log of captured events.
func CheckBuffer(size Size) error { return atLeast(size, 64<<20) }

// CheckMaxEventSize reports what is wrong with the size limit of an event.
func CheckMaxEventSize(size Size) error { return between(size, 1<<10, 16<<20) }

// CheckMaxBatchSize reports what is wrong with the size limit for the body of a capture request.
func CheckMaxBatchSize(size Size) error { return between(size, 1<<10, 100<<20) }

// CheckClickHouseDSN reports what is wrong with the DSN of a ClickHouse server. Its error contains no password.
func CheckClickHouseDSN(dsn string) error { return clickhouse.Config{DSN: dsn}.Validate() }

// CheckCluster reports what is wrong with the name of a ClickHouse cluster.
func CheckCluster(name string) error { return clickhouse.CheckCluster(name) }

// CheckShardName reports what is wrong with the name of a shard. The main shard, whose DSN is that of clickhouse, has no name.
func CheckShardName(name string) error {
	if !shardNames.MatchString(name) {
		return fmt.Errorf("%q is not a valid name of a shard (want up to 50 letters, digits, - and _)", name)
	}
	return nil
}

var shardNames = regexp.MustCompile(`^[\w-]{1,50}$`)

// CheckRegistryDSN reports what is wrong with the DSN of a registry.
func CheckRegistryDSN(dsn string) error { return registry.CheckDSN(dsn) }

// CheckPublicURL reports what is wrong with the beginning of links.
func CheckPublicURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || text != u.Scheme+"://"+u.Host || !api.HostForm.MatchString(u.Host) {
		return fmt.Errorf("%q is not a valid scheme and host (want, for example, https://api.example.com)", text)
	}
	return nil
}

// CheckWebhook reports what is wrong with the address that messages of alerts are sent to.
func CheckWebhook(address string) error { return phrase(alerts.CheckURL(address)) }

// CheckWebhookSecret reports what is wrong with the secret that signs these messages. Its error does not hold the secret.
func CheckWebhookSecret(secret string) error { return phrase(alerts.CheckSecret(secret)) }

// phrase is an error that is a sentence of the API, as a part of a longer message.
func phrase(err error) error {
	if err == nil {
		return nil
	}
	text := strings.TrimSuffix(err.Error(), ".")
	return errors.New(strings.ToLower(text[:1]) + text[1:])
}

// CheckTTL reports what is wrong with the freshness of the query route.
func CheckTTL(ttl caddy.Duration) error {
	if ttl <= 0 {
		return errNotPositive
	}
	return nil
}

// CheckStale reports what is wrong with how long an answer is served past its freshness.
func CheckStale(stale caddy.Duration) error {
	if stale < 0 {
		return errors.New("must not be negative")
	}
	return nil
}

// CheckMaxExecutionTime reports what is wrong with the time limit of a query.
func CheckMaxExecutionTime(longest caddy.Duration) error {
	if time.Duration(longest) < time.Second {
		return errors.New("must be at least 1s")
	}
	return nil
}

func atLeast(size, least Size) error {
	if size < least {
		return fmt.Errorf("must be at least %s, not %s", least, size)
	}
	return nil
}

func between(size, least, most Size) error {
	if size > most {
		return fmt.Errorf("must be at most %s, not %s", most, size)
	}
	return atLeast(size, least)
}

var errNotPositive = errors.New("must be positive")

// Validate refuses values that can't work, from JSON as well as from the Caddyfile.
func (a *App) Validate() error {
	var wrong []error
	check := func(option string, err error) {
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s %w", option, err))
		}
	}
	check("capture buffer", CheckBuffer(a.Capture.Buffer))
	check("capture max_event_size", CheckMaxEventSize(a.Capture.MaxEventSize))
	check("capture max_batch_size", CheckMaxBatchSize(a.Capture.MaxBatchSize))
	check("cache max_size", CheckMaxSize(a.Cache.MaxSize))
	check("cache ttl", CheckTTL(a.Cache.TTL))
	check("cache stale", CheckStale(*a.Cache.Stale))
	if a.Cache.SettledPastOnDisk && !*a.Cache.SettledPast {
		check("cache settled_past_on_disk", errors.New("needs settled_past"))
	}
	check("limits max_execution_time", CheckMaxExecutionTime(a.Limits.MaxExecutionTime))
	check("limits max_memory", CheckMaxMemory(a.Limits.MaxMemory))
	if a.Limits.Concurrency <= 0 {
		check("limits concurrency", errNotPositive)
	}
	if a.Limits.Records <= 0 {
		check("limits records", errNotPositive)
	}
	check("limits records_size", CheckRecordsSize(a.Limits.RecordsSize))
	check("limits import_size", CheckImportSize(a.Limits.ImportSize))
	if a.Limits.Places < 0 {
		check("limits places", errNotPositive)
	}
	if a.Limits.Rate.Queries <= 0 {
		check("limits rate", errNotPositive)
	}
	if a.Alerts.Webhook != "" {
		check("alerts webhook:", CheckWebhook(a.Alerts.Webhook))
	}
	if a.Alerts.WebhookSecret != "" {
		check("alerts webhook_secret:", CheckWebhookSecret(a.Alerts.WebhookSecret))
	}
	if a.PublicURL != "" {
		check("public_url:", CheckPublicURL(a.PublicURL))
	}
	if a.ClickHouse != "" {
		wrong = append(wrong, CheckClickHouseDSN(a.ClickHouse))
	}
	if a.Cluster != "" {
		check("clickhouse cluster", CheckCluster(a.Cluster))
		if a.ClickHouse == "" {
			check("clickhouse cluster:", errors.New("the embedded engine has no cluster; set clickhouse to a server"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Shards)) {
		dsn, what := a.Shards[name], "clickhouse shard "+name+":"
		check(what, CheckShardName(name))
		check(what, CheckClickHouseDSN(dsn))
		if a.ClickHouse == "" {
			check(what, errors.New("the embedded engine has no shards; set clickhouse to a server"))
		}
	}
	wrong = append(wrong, CheckRegistryDSN(a.Registry), a.validateFolders(), a.validatePeers())
	return errors.Join(wrong...)
}
