package module

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// user is who made or changed something: contract section 4.3. There are no accounts here: each personal key is a user of its
// own, who has the key's label for a name. A number and an address are given because clients insist on them; the address is
// one that no mail can reach.
type user struct {
	ID                 int64           `json:"id"`
	UUID               string          `json:"uuid"`
	DistinctID         string          `json:"distinct_id"`
	FirstName          string          `json:"first_name"`
	LastName           string          `json:"last_name"`
	Email              string          `json:"email"`
	IsEmailVerified    *bool           `json:"is_email_verified"`
	HedgehogConfig     json.RawMessage `json:"hedgehog_config"`
	RoleAtOrganization *string         `json:"role_at_organization"`
}

// idSpace is the name space of the UUIDs of what is known here by a number or another id.
var idSpace = uuid.MustParse("e826ca13-142d-4eb9-a507-4d4114e24f2d")

// derivedID is a UUID that always is the same for the same thing.
func derivedID(kind, id string) string { return uuid.NewSHA1(idSpace, []byte(kind+" "+id)).String() }

func recordUser(k *registry.Key) *user {
	return &user{
		ID: k.User, UUID: derivedID("user", k.ID), DistinctID: k.ID, FirstName: cmp.Or(k.Label, k.Mask),
		Email: fmt.Sprintf("user-%d@analytics.invalid", k.User),
	}
}

// user is the user that the id of a key of the project stands for; nil when an operator did it, or a secret key, which is
// nobody.
func (rq *request) user(key string) *user {
	if key == "" {
		return nil
	}
	k := rq.Snapshot.KeyByID(rq.Project.ID, key)
	if k == nil || k.User == 0 {
		return nil
	}
	return recordUser(k)
}

// userNumber is the number of that user; 0 when there is none.
func (rq *request) userNumber(key string) int64 {
	if k := rq.Snapshot.KeyByID(rq.Project.ID, key); k != nil {
		return k.User
	}
	return 0
}
