package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func TestPersonComplete(t *testing.T) {
	tests := []struct{ name, properties, want string }{
		{"the email", `{"name": "Ann", "email": "ann@mail.test"}`, "ann@mail.test"},
		{"what is not empty", `{"email": "", "Name": "Ann"}`, "Ann"},
		{"a number", `{"username": 12}`, "12"},
		{"letters of another case", `{"EMAIL": "ann@mail.test", "userName": "Ann"}`, "ann"},
		{"an id that somebody chose", `{}`, "ann"},
		{"no properties", ``, "ann"},
	}
	c := &api.Caller{}
	c.Snapshot, c.Project = new(registry.Snapshot), &registry.Project{ID: 1}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := api.Person{ID: "x", DistinctIDs: []string{"01890000-0000-7000-8000-000000000000", "ann"}, CreatedAt: new(time.Unix(0, 0))}
			want := api.Person{
				ID: "x", UUID: "x", Type: "person", Name: tt.want, DistinctIDs: []string{"ann", "01890000-0000-7000-8000-000000000000"},
				Properties: json.RawMessage(`{}`),
			}
			if tt.properties != "" {
				p.Properties, want.Properties = json.RawMessage(tt.properties), json.RawMessage(tt.properties)
			}
			p.Complete(c)
			if diff := cmp.Diff(want, p); diff != "" {
				t.Errorf("Complete (-want +got):\n%s", diff)
			}
		})
	}
}
