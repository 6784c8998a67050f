package engine_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// TestDocsRun runs every example of the page on the dialect.
func TestDocsRun(t *testing.T) {
	page, err := os.ReadFile("../../docs/hogql.md")
	if err != nil {
		t.Fatal(err)
	}
	cohorts := schema.NewCohorts([]schema.Cohort{{ID: 5, Name: "trial", Version: 3}, {ID: 6, Name: "paying customers", Version: 3}}, false)
	db := &schema.Database{Project: project, Location: time.UTC, Cohorts: cohorts}
	actions := query.NewActions([]query.Action{{ID: 5, Name: "signed up", Steps: []query.ActionStep{{Event: "sign up"}, {URL: "/welcome"}}}})
	blocks := strings.Split(string(page), "```")
	ran := 0
	for _, block := range blocks {
		if text, ok := strings.CutPrefix(block, "sql\n"); ok {
			ran++
			selects(t, compiler.Env{Database: db, Actions: actions}, text)
		}
	}
	if ran < 5 {
		t.Errorf("only %d examples", ran)
	}
}
