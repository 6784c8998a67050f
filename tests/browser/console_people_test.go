package browser_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// twoPeople makes a project in which two people had an event each, and returns their UUIDs by distinct id.
func twoPeople(t *testing.T, d *harness.Demo, name string) (*harness.Client, map[string]string) {
	t.Helper()
	client := newClient(t, d, name)
	at := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	for _, id := range []string{"ann", "bob"} {
		imported(t, client, map[string]any{
			"event": "visited", "distinct_id": id, "timestamp": at,
			"properties": map[string]any{"$set": map[string]any{"email": id + "@example.com", "visits": 3, "trial": true, "tags": []string{"a"}}},
		})
	}
	people := map[string]string{}
	for _, row := range client.Query(t, "select distinct_id, toString(person_id) from events") {
		cells, _ := row.([]any)
		people[fmt.Sprint(cells[0])] = fmt.Sprint(cells[1])
	}
	return client, people
}

// TestConsoleDeletePerson deletes one person with their events, and the events of another; the list of deletions shows it.
func TestConsoleDeletePerson(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client, people := twoPeople(t, d, "deleted")
	reader := signedIn(t, d.Server, client.Project, "person:read", "project:read")
	reader.visit(t, "person/"+people["ann"])
	reader.one(t, "heading", "ann@example.com")
	if len(reader.find(t, "button", "More")) != 0 {
		t.Error("a key that only reads can delete")
	}
	reader.visit(t, "persons/deletions")
	reader.shows(t, "Nobody was deleted")

	c := signedIn(t, d.Server, client.Project)
	c.visit(t, "person/"+people["ann"])
	c.press(t, "button", "More")
	c.press(t, "menuitem", "Delete person…")
	c.one(t, "heading", "Delete ann@example.com?")
	c.shows(t, "Their events stay, and still count.")
	c.press(t, "checkbox", "Delete their events too")
	c.shows(t, "Numbers that counted these events change.")
	c.inspect(t, "delete-person")
	c.press(t, "button", "Cancel")
	if answer := client.Do(t, http.MethodGet, "persons/"+people["ann"]+"/", nil); answer.Status != http.StatusOK {
		t.Errorf("after Cancel, the person is gone: %d", answer.Status)
	}
	c.press(t, "button", "More")
	c.press(t, "menuitem", "Delete person…")
	c.press(t, "checkbox", "Delete their events too")
	c.press(t, "button", "Delete person")
	c.one(t, "heading", "Deletions")
	c.shows(t, people["ann"])
	c.shows(t, "Person and events")
	c.shows(t, "Hidden, on disk until it is erased")
	client.Shows(t, "select distinct_id from events", []any{"bob"})

	c.visit(t, "person/"+people["bob"])
	c.press(t, "button", "More")
	c.press(t, "menuitem", "Delete events…")
	c.one(t, "heading", "Delete the events of bob@example.com?")
	c.press(t, "button", "Delete events")
	c.one(t, "heading", "Deletions")
	c.shows(t, people["bob"])
	got := c.column(t, "Deletions", 1)
	slices.Sort(got)
	if !slices.Equal(got, []string{"Events", "Person and events"}) {
		t.Errorf("the list has %q", got)
	}
	c.inspect(t, "deletions")
	c.press(t, "link", "All people")
	if got := strings.Join(c.column(t, "People", 0), " "); got != "bob@example.com" {
		t.Errorf("the people are %q", got)
	}
	client.Shows(t, "select count() from events", []any{0.0})
}

// TestConsolePersonProperties sets, changes and deletes properties of a person.
func TestConsolePersonProperties(t *testing.T) {
	t.Parallel()
	d := demoServer(t)
	client, people := twoPeople(t, d, "changed")
	holds := func(what string, want any) {
		t.Helper()
		client.Shows(t, "select "+what+" from persons where id = '"+people["ann"]+"'", []any{want})
	}
	c := signedIn(t, d.Server, client.Project)
	c.visit(t, "person/"+people["ann"])
	c.press(t, "tab", "Properties (4)")
	c.press(t, "button", "Set a property")
	c.fill(t, "textbox", "Property", "plan")
	c.fill(t, "textbox", "Value", "pro ☕")
	c.inspect(t, "set-property")
	c.pressTells(t, "button", "Save", "plan was set")
	c.one(t, "tab", "Properties (5)")
	holds("properties.plan", "pro ☕")

	c.press(t, "button", "Actions for visits")
	c.press(t, "menuitem", "Change…")
	c.one(t, "heading", "Change visits")
	c.fill(t, "textbox", "Value", "many")
	c.press(t, "button", "Save")
	c.shows(t, "Write a number, such as 12 or 0.5.")
	c.fill(t, "textbox", "Value", "4.5")
	c.pressTells(t, "button", "Save", "visits was set")
	holds("properties.visits", 4.5)

	c.press(t, "button", "Actions for tags")
	c.press(t, "menuitem", "Change…")
	c.fill(t, "textbox", "Value", `["b", {"c": 1}]`)
	c.pressTells(t, "button", "Save", "tags was set")

	c.press(t, "button", "Set a property")
	c.fill(t, "textbox", "Property", "account")
	c.pick(t, "Type", "number")
	c.fill(t, "textbox", "Value", "9007199254740993")
	c.pressTells(t, "button", "Save", "account was set")
	c.press(t, "button", "Actions for account")
	c.press(t, "menuitem", "Change…")
	if got := c.evaluate(t, `document.querySelector("dialog input[inputmode=decimal]").value`); got != "9007199254740993" {
		t.Errorf("the account to change is %s", got)
	}
	c.press(t, "button", "Save")
	c.shows(t, "9007199254740993")
	if got := client.Do(t, http.MethodGet, "persons/"+people["ann"]+"/", nil); !strings.Contains(string(got.Raw), `"account":9007199254740993`) {
		t.Errorf("the account was changed: %s", got.Raw)
	}

	c.press(t, "button", "Actions for trial")
	c.press(t, "menuitem", "Delete…")
	c.one(t, "heading", "Delete trial?")
	c.pressTells(t, "button", "Delete property", "trial was deleted")
	c.one(t, "tab", "Properties (5)")
	if got := c.column(t, "Properties of the person", 0); slices.Contains(got, "trial") || !slices.Contains(got, "plan") {
		t.Errorf("the properties are %q", got)
	}
	c.inspect(t, "person-properties")

	reader := signedIn(t, d.Server, client.Project, "person:read", "project:read")
	reader.visit(t, "person/"+people["ann"])
	reader.shows(t, "pro ☕")
	if len(reader.find(t, "button", "Set a property")) != 0 || len(reader.find(t, "button", "Actions for plan")) != 0 {
		t.Error("a key that only reads can change properties")
	}
}
