package module

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// TestLoadsAreLoggedWithoutValues: a background refresh may fail because of a row, which ClickHouse then quotes.
func TestLoadsAreLoggedWithoutValues(t *testing.T) {
	core, lines := observer.New(zap.DebugLevel)
	app := &App{logger: zap.New(core)}
	app.reportLoad(cache.Key{}, fmt.Errorf("asking: %w", &clickhouse.Error{Kind: clickhouse.UserError, Code: 41, Name: "cannot_parse_datetime", Message: "Cannot parse 'MARKER'"}))
	app.reportLoad(cache.Key{}, errors.New("plain"))
	var all string
	for _, line := range lines.All() {
		all += fmt.Sprintln(line.Message, line.ContextMap())
	}
	if lines.Len() != 2 || strings.Contains(all, "MARKER") || !strings.Contains(all, "code 41, cannot_parse_datetime") || !strings.Contains(all, "plain") {
		t.Errorf("the log has\n%s", all)
	}
}
