package api

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// User is the author of a record or of a change: contract api.md, section 4.3. There are no accounts here: each personal key is its own user, named after the
// key's label. It has a number and a mail address because clients insist on them; the address receives no mail.
type User struct {
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

// idSpace is the namespace of the UUIDs that DerivedID makes.
var idSpace = uuid.MustParse("e826ca13-142d-4eb9-a507-4d4114e24f2d")

// DerivedID returns a UUID for something that has only a number or another id. It is the same each time for the same kind and id.
func DerivedID(kind, id string) string { return uuid.NewSHA1(idSpace, []byte(kind+" "+id)).String() }

// UserOf returns the user that a personal key stands for.
func UserOf(k *registry.Key) *User {
	return &User{
		ID: k.User, UUID: DerivedID("user", k.ID), DistinctID: k.ID, FirstName: cmp.Or(k.Label, k.Mask),
		Email: fmt.Sprintf("user-%d@analytics.invalid", k.User),
	}
}

// User returns the user that the key with this id stands for. It is nil if the id is empty (an operator made the change), if the project has no such key,
// or if it is a secret key, which stands for nobody.
func (c *Caller) User(key string) *User {
	if key == "" {
		return nil
	}
	k := c.Snapshot.KeyByID(c.Project.ID, key)
	if k == nil || k.User == 0 {
		return nil
	}
	return UserOf(k)
}

// UserNumber returns the number of that user; 0 if there is none.
func (c *Caller) UserNumber(key string) int64 {
	if k := c.Snapshot.KeyByID(c.Project.ID, key); k != nil {
		return k.User
	}
	return 0
}

// GroupType is a kind of group that events can belong to.
type GroupType struct {
	GroupType      string  `json:"group_type"`
	GroupTypeIndex int     `json:"group_type_index"`
	NameSingular   *string `json:"name_singular"`
	NamePlural     *string `json:"name_plural"`
}

// GroupTypes returns the group types of the caller's project; empty, not nil, if there are none.
func (c *Caller) GroupTypes() []GroupType {
	types := []GroupType{}
	for _, g := range c.Snapshot.GroupTypes(c.Project.ID) {
		types = append(types, GroupType{GroupType: g.Name, GroupTypeIndex: g.Index})
	}
	return types
}
