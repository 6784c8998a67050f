package registry

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// KeyKind says whose a key is: a person's or a project's.
type KeyKind string

// The kinds of keys (contract: api.md, sections 6.2 and 6.3).
const (
	Personal KeyKind = "personal" // phx_…: a person's, with what its scopes allow
	Secret   KeyKind = "secret"   // phs_…: a project's own, for running endpoints
)

// Prefix returns the prefix of every key of the kind.
func (k KeyKind) Prefix() string {
	if k == Secret {
		return "phs_"
	}
	return "phx_"
}

// Key is a credential. The text of the key itself is not stored, only its hash.
type Key struct {
	ID           string    `json:"id"`
	User         int64     `json:"user,omitempty"` // number of the user that a personal key stands for, from 1 over all projects; 0 for a secret key
	Kind         KeyKind   `json:"kind"`
	Label        string    `json:"label"`
	Mask         string    `json:"mask"` // first and last four characters of the key
	Hash         [32]byte  `json:"-"`
	Project      int64     `json:"-"`
	Scopes       []string  `json:"scopes"`
	CreatedAt    time.Time `json:"created_at"`
	ExpiresAt    time.Time `json:"expires_at,omitzero"`     // zero: never
	LastUsedAt   time.Time `json:"last_used_at,omitzero"`   // written by earlier versions: see [Snapshot.LastUsed]
	LastRolledAt time.Time `json:"last_rolled_at,omitzero"` // zero: never
	RevokedAt    time.Time `json:"revoked_at,omitzero"`     // zero: not revoked

	// Fixed holds the variables that every run with the key has, whatever its caller says: a JSON object with sorted names, so that equal objects are equal texts;
	// empty for none. They limit the rows that a customer may see.
	Fixed string `json:"fixed,omitempty"`
	// Endpoints are the names of the endpoints that the key may run, sorted; nil for all.
	Endpoints []string `json:"endpoints"`
	// CreatedBy is the id of the personal key that made this one; empty if an operator did.
	CreatedBy string `json:"created_by,omitempty"`
	// Session reports that the key came from signing in, and is not meant to be kept: it is purged soon after it has ended.
	Session bool `json:"session,omitempty"`
	// Parent is the id of the personal key that this one ends with; empty for none.
	Parent string `json:"parent,omitempty"`
}

// storedKey is the JSON of a key.
type storedKey struct {
	*Key
	Hash string `json:"hash"` // in hexadecimal digits
}

func (k *Key) stored() any { return storedKey{k, hex.EncodeToString(k.Hash[:])} }

func readKey(rec *Record) (entity, error) {
	k := &Key{ID: rec.ID, Project: rec.Project}
	s := storedKey{Key: k}
	if err := decode(rec, &s); err != nil || rec.Data == nil {
		return k, err
	}
	if n, err := hex.Decode(k.Hash[:], []byte(s.Hash)[:min(len(s.Hash), 2*len(k.Hash))]); err != nil || n != len(k.Hash) {
		return nil, errors.New("its hash is not 32 bytes")
	}
	return k, nil
}

func (k *Key) name() recordName { return recordName{k.Project, KindKey, k.ID} }

func (k *Key) unique() []string {
	keys := []string{"id " + k.ID, "hash " + hex.EncodeToString(k.Hash[:])}
	if k.User != 0 {
		keys = append(keys, "user "+digits(k.User))
	}
	if k.labels() {
		keys = append(keys, within(k.Project, "label "+IDText(k.Label)))
	}
	return keys
}

// labels reports whether the key has a label that no other secret key of the project may have.
func (k *Key) labels() bool { return k.Kind == Secret && k.RevokedAt.IsZero() && k.Label != "" }

func (k *Key) size() int {
	return len(k.Label) + len(k.Fixed) + listBytes(k.Scopes) + listBytes(k.Endpoints)
}

func (k *Key) checkSize() error { return nil } // each field has a limit

func (k *Key) put(d *draft, p *projectState) (Stored, error) {
	e := &keyEntry{Key: *k, used: new(atomic.Int64)}
	if before := p.keys.get(k.ID); before != nil {
		e.used = before.used
		d.next.keys = d.next.keys.Delete(before.Hash)
	}
	raise(e.used, k.LastUsedAt)
	if k.RevokedAt.IsZero() {
		d.next.keys = d.next.keys.Set(k.Hash, e)
	}
	return p.keys.put(e), nil
}

func (k *Key) remove(d *draft, p *projectState) Stored {
	if before := p.keys.get(k.ID); before != nil {
		d.next.keys = d.next.keys.Delete(before.Hash)
	}
	return p.keys.remove(k.ID)
}

func (e *keyEntry) key() string { return e.ID }

// code returns the label of a secret key, by which another key with the same label is found.
func (e *keyEntry) code() string {
	if e.labels() {
		return e.Label
	}
	return ""
}

// listed reports whether the key is a secret key that is not revoked.
func (e *keyEntry) listed() bool { return e.Kind == Secret && e.RevokedAt.IsZero() }

// compare puts new keys first.
func (e *keyEntry) compare(other *keyEntry) int {
	return cmp.Or(other.CreatedAt.Compare(e.CreatedAt), cmp.Compare(e.ID, other.ID))
}

// checkLabel returns an error if another secret key of the project has the label of k.
func (p *projectState) checkLabel(k *Key) error {
	if !k.labels() {
		return nil
	}
	if other := p.keys.coded(k.Label); other != nil && other.ID != k.ID {
		return &FieldError{Field: "label", Code: CodeUnique, Message: labelTaken}
	}
	return nil
}

// Bound reports whether the key is limited to fixed variables or to some endpoints. Such a key can only run endpoints.
func (k *Key) Bound() bool { return k.Fixed != "" || k.Endpoints != nil }

// MayRun reports whether the key's list of endpoints allows it to run the endpoint with this name.
func (k *Key) MayRun(endpoint string) bool {
	if k.Endpoints == nil {
		return true
	}
	_, found := slices.BinarySearch(k.Endpoints, endpoint)
	return found
}

// Expired reports whether the key has expired.
func (k *Key) Expired(now time.Time) bool {
	return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt)
}

// Allows reports whether the key holds a scope such as endpoint:read: x:write holds x:read, * holds all
// (contract: api.md, section 6.4).
func (k *Key) Allows(scope string) bool {
	object, reading := strings.CutSuffix(scope, ":read")
	for _, held := range k.Scopes {
		if held == scope || held == "*" {
			return true
		}
		if writes, ok := strings.CutSuffix(held, ":write"); ok && reading && writes == object {
			return true
		}
	}
	return false
}

// mayGive refuses scopes that the key lacks: a key gives out no more than it has. A nil key is an operator, who can give all.
func (k *Key) mayGive(scopes []string) error {
	if k == nil {
		return nil
	}
	missing := slices.DeleteFunc(slices.Clone(scopes), k.Allows)
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return &ScopeError{Missing: slices.Compact(missing)}
}

// HashKey returns the SHA-256 of a key's text, by which the key is stored and found. A fast hash is enough, because a key has 280 random bits.
func HashKey(key string) [sha256.Size]byte {
	var room [128]byte // keeps the conversion off the heap for any key that we made
	return sha256.Sum256(append(room[:0], key...))
}

// MaxKeyLabel is the longest label of a key, in characters: contract api.md, section 6.
const MaxKeyLabel = 40

// The limits of contract api.md, sections 6 and 8.
const (
	maxSecretKeys = 50
	maxFixed      = 4 << 10 // bytes; not in the contract, like the next
	maxKeyTargets = 200
	keyBytes      = 35
	keyIDBytes    = 16
)

// NewKey describes a new key.
type NewKey struct {
	Project   int64
	Kind      KeyKind        // empty for Personal
	Label     string         // at most 40 characters; unique among a project's secret keys unless empty
	Scopes    []string       // at least one: "object:read" or "object:write" of the closed list, or "*" for a personal key
	ExpiresAt time.Time      // zero: never
	Fixed     map[string]any // JSON values by the names of variables, in the types of their definitions; none may be null or empty
	Endpoints []string       // names; nil for all
	CreatedBy string         // id of the personal key that asks; empty for an operator
	Session   bool           // for signing in; it is personal and expires
	// Grantor is the key that asks: the new key can have only scopes that the grantor has, and a personal key ends with it unless the grantor is a session's. Nil
	// for an operator.
	Grantor *Key

	parent string // see inherit
}

// CreateKey adds a key and returns its text, which can't be had again. Mistakes are *FieldError; an unknown project is ErrNotFound. Scopes that the grantor
// lacks are a *ScopeError, and anything else that it may not do is a *DeniedError.
func (r *Registry) CreateKey(ctx context.Context, n NewKey, now time.Time) (k *Key, text string, err error) {
	if n.Kind == "" {
		n.Kind = Personal
	}
	n.Label = strings.TrimSpace(n.Label)
	if err := n.Validate(now); err != nil {
		return nil, "", err
	}
	if err := n.Grantor.mayGive(n.Scopes); err != nil {
		return nil, "", err
	}
	if err := n.inherit(); err != nil {
		return nil, "", err
	}
	created := Key{
		ID:        randomText(keyIDBytes),
		Kind:      n.Kind,
		Label:     n.Label,
		Project:   n.Project,
		Scopes:    once(n.Scopes),
		CreatedAt: moment(now),
		ExpiresAt: moment(n.ExpiresAt),
		CreatedBy: n.CreatedBy,
		Session:   n.Session,
		Parent:    n.parent,
	}
	if n.Endpoints != nil {
		created.Endpoints = once(n.Endpoints)
		slices.Sort(created.Endpoints)
	}
	if created.Fixed, err = FixedText(n.Fixed); err != nil {
		return nil, "", err
	}
	text = created.renew()
	err = r.write(ctx, n.Project, func(t *tx) error {
		p, err := t.state()
		if err != nil {
			return err
		}
		k := created
		switch k.Kind {
		case Secret:
			if p.keys.list.Len() >= maxSecretKeys {
				return invalid("label", "A project can have at most %d secret keys.", maxSecretKeys)
			}
		case Personal:
			k.User = t.number(kindUser)
		}
		if err := p.checkLabel(&k); err != nil {
			return err
		}
		if err := p.checkGrantor(&n, now); err != nil {
			return err
		}
		created = k
		return t.put(&k)
	})
	if err != nil {
		return nil, "", fmt.Errorf("creating a key: %w", err)
	}
	return &created, text, nil
}

// labelTaken says that another secret key of the project has the label.
const labelTaken = "A key with this label already exists for this project."

// KeyUpdate is a change of a key; nil fields stay.
type KeyUpdate struct {
	Label   *string
	Scopes  []string
	Grantor *Key // the key that asks: it can only add scopes that it has; nil for an operator
}

// UpdateKey changes the label and the scopes of a key. Mistakes are *FieldError; an unknown id is ErrNotFound, a revoked key ErrRevoked. Adding scopes that the
// grantor lacks is a *ScopeError, and adding scopes to a personal key that it does not rule is a *DeniedError. Keys that were made with the key are revoked if
// they have a scope that it loses.
func (r *Registry) UpdateKey(ctx context.Context, id string, u KeyUpdate, now time.Time) (*Key, error) {
	k, err := r.changeKey(ctx, id, func(t *tx, k *Key) error {
		if !k.RevokedAt.IsZero() {
			return ErrRevoked
		}
		if u.Label != nil {
			k.Label = strings.TrimSpace(*u.Label)
		}
		before := *k
		if u.Scopes != nil {
			k.Scopes = once(u.Scopes)
		}
		if err := checkKey(k.Kind, k.Label, k.Scopes); err != nil {
			return err
		}
		if added := slices.DeleteFunc(slices.Clone(k.Scopes), before.Allows); len(added) > 0 {
			by, err := t.draft.project(k.Project).asking(u.Grantor)
			if err := cmp.Or(err, by.mayGive(added), by.checkRules(k)); err != nil {
				return err
			}
		}
		return t.endFamily(k, now, func(made *Key) bool { return before.Covers(made) && !k.Covers(made) })
	})
	if err != nil {
		return nil, fmt.Errorf("updating key %q: %w", id, err)
	}
	return k, nil
}

// checkKey checks the fields of a key that can be changed. Mistakes are *FieldError.
func checkKey(kind KeyKind, label string, scopes []string) error {
	switch {
	case utf8.RuneCountInString(label) > MaxKeyLabel:
		return tooLong("label", MaxKeyLabel)
	case len(scopes) == 0:
		return required("scopes")
	}
	return validateScopes(kind, scopes)
}

// Validate reports what is wrong with n, regardless of what the project has. Mistakes are *FieldError.
func (n NewKey) Validate(now time.Time) error {
	kind := cmp.Or(n.Kind, Personal)
	switch {
	case kind != Personal && kind != Secret:
		return notChoice("kind", string(kind))
	case n.Session && (kind != Personal || n.ExpiresAt.IsZero()):
		return invalid("expires_at", "The key of a session is a personal key that expires.")
	case !n.ExpiresAt.IsZero() && !n.ExpiresAt.After(now):
		return invalid("expires_at", "The time of expiry must be in the future.")
	case len(n.Endpoints) > maxKeyTargets:
		return invalid("endpoints", "A key can name at most %d endpoints.", maxKeyTargets)
	case n.Endpoints != nil && (len(n.Endpoints) == 0 || slices.Contains(n.Endpoints, "")):
		return invalid("endpoints", "Each endpoint needs a name.")
	}
	return checkKey(kind, n.Label, n.Scopes)
}

// FixedText returns the value of Key.Fixed for these values. Mistakes are *FieldError. A value that is null or empty is one: it is more often a slip than
// intended, and queries tend to take it for "all".
func FixedText(values map[string]any) (string, error) {
	if len(values) == 0 {
		return "", nil
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list, isList := values[name].([]any)
		if value := values[name]; value == nil || value == "" || isList && len(list) == 0 {
			return "", invalid("fixed", "The value of %s can't be empty.", name)
		}
	}
	text, err := json.Marshal(values) // the names come out in order
	if err != nil {
		return "", fmt.Errorf("writing fixed variables: %w", err)
	}
	if len(text) > maxFixed {
		return "", invalid("fixed", "The fixed variables take more than %d bytes.", maxFixed)
	}
	return string(text), nil
}

// RollKey gives a key a new text under the same id; the old text stops working at once. An unknown id is ErrNotFound, a revoked key ErrRevoked. Whoever rolls a
// key can use it: scopes that by lacks are a *ScopeError, and a personal key that by does not rule is a *DeniedError; by is nil for an operator. Keys that were
// made with the key are revoked.
func (r *Registry) RollKey(ctx context.Context, id string, by *Key, now time.Time) (k *Key, text string, err error) {
	rolled, err := r.changeKey(ctx, id, func(t *tx, k *Key) error {
		if !k.RevokedAt.IsZero() {
			return ErrRevoked
		}
		by, err := t.draft.project(k.Project).asking(by)
		if err := cmp.Or(err, by.mayGive(k.Scopes), by.checkRules(k)); err != nil {
			return err
		}
		text = k.renew()
		k.LastRolledAt = moment(now)
		return t.endFamily(k, now, nil)
	})
	if err != nil {
		return nil, "", fmt.Errorf("rolling key %q: %w", id, err)
	}
	return rolled, text, nil
}

// RevokeKey ends a key for good, with the keys that were made with it; when it returns, they no longer work on this node. Revoking a key again changes nothing.
// An unknown id is ErrNotFound.
func (r *Registry) RevokeKey(ctx context.Context, id string, now time.Time) (*Key, error) {
	revoked, err := r.changeKey(ctx, id, func(t *tx, k *Key) error {
		if k.RevokedAt.IsZero() {
			k.RevokedAt = moment(now)
		}
		return t.endFamily(k, now, nil)
	})
	if err != nil {
		return nil, fmt.Errorf("revoking key %q: %w", id, err)
	}
	return revoked, nil
}

func (r *Registry) changeKey(ctx context.Context, id string, change func(*tx, *Key) error) (*Key, error) {
	var changed Key
	err := r.write(ctx, 0, func(t *tx) error {
		before := t.next.anyKey(id)
		if before == nil {
			return ErrNotFound
		}
		t.expect(before.Project) // for its labels
		k := before.Key
		if err := change(t, &k); err != nil {
			return err
		}
		if err := t.draft.project(k.Project).checkLabel(&k); err != nil {
			return err
		}
		changed = k
		return t.put(&k)
	})
	if err != nil {
		return nil, err
	}
	return &changed, nil
}

// anyKey returns the key with an id, in any project; nil if there is none.
func (s *Snapshot) anyKey(id string) *keyEntry {
	if s.projects == nil {
		return nil
	}
	for each := s.projects.Iterator(); !each.Done(); {
		if _, p, _ := each.Next(); p.keys.get(id) != nil {
			return p.keys.get(id)
		}
	}
	return nil
}

// renew gives the key a new text, and returns it.
func (k *Key) renew() string {
	text := k.Kind.Prefix() + randomText(keyBytes)
	k.Hash = HashKey(text)
	k.Mask = text[:4] + "..." + text[len(text)-4:]
	return text
}

// randomText returns n random bytes in base 62: digits, lower case, upper case.
func randomText(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // documented never to fail
	return new(big.Int).SetBytes(b).Text(62)
}

// validateScopes checks each scope against the closed lists (contract: api.md, sections 6.2 and 6.3).
func validateScopes(kind KeyKind, scopes []string) error {
	for _, scope := range scopes {
		if !scopeExists(scope) || kind == Secret && !slices.Contains(secretScopes, scope) {
			return invalid("scopes", "Invalid scope: %s", scope)
		}
	}
	return nil
}

func scopeExists(scope string) bool {
	if scope == "*" {
		return true
	}
	object, action, ok := strings.Cut(scope, ":")
	if !ok || action != "read" && action != "write" {
		return false
	}
	_, known := slices.BinarySearch(scopeObjects, object)
	return known
}

// secretScopes are the scopes that a project secret key may have (contract: api.md, section 6.3): PostHog's list and, as in its documentation, query:read. Only
// endpoint:read allows anything here; the others are accepted so that the record of a key can be copied as it is.
var secretScopes = []string{"account:read", "endpoint:read", "experiment:read", "feature_flag:read", "loop:write", "query:read"}

// scopeObjects is PostHog's list of objects that scopes of a personal key can name, sorted. Most have no route here.
var scopeObjects = []string{
	"access_control", "account", "action", "activity_log", "ai_observability_clusters", "alert", "annotation", "approvals",
	"batch_export", "batch_import", "batch_import_support", "billing", "business_knowledge",
	"canvas", "cohort", "comment", "conversation", "customer_analytics", "customer_journey", "customer_profile_config", "customer_task",
	"dashboard", "dashboard_template", "data_catalog", "data_catalog_approval", "dataset",
	"early_access_feature", "element", "endpoint", "engineering_analytics", "error_tracking", "evaluation", "event_definition", "event_filter",
	"experiment", "experiment_holdout", "experiment_saved_metric", "export", "external_data_schema", "external_data_source",
	"feature_flag", "field_note", "file_system", "file_system_shortcut",
	"group", "health_issue", "heatmap", "hog_flow", "hog_function",
	"ingestion_warning", "insight", "insight_variable", "integration",
	"legal_document", "link", "live_debugger", "llm_analytics", "llm_gateway", "llm_playground", "llm_prompt", "llm_provider_key", "llm_skill",
	"logs", "loop", "marketing_analytics", "mcp_analytics", "metrics", "notebook",
	"organization", "organization_integration", "organization_member",
	"person", "plugin", "product_enablement", "product_tour", "project", "property_definition",
	"query", "query_performance", "replay_scanner", "revenue_analytics", "review_hog",
	"session_recording", "session_recording_playlist", "sharing_configuration", "signal_scout", "stamphog", "streamlit_app", "subscription", "survey",
	"tagger", "task", "ticket", "toolbar", "tracing",
	"uploaded_media", "usage_metric", "user", "user_interview", "vision_action", "vision_alert", "visual_review",
	"warehouse_objects", "warehouse_table", "warehouse_view", "web_analytics", "webhook", "wizard_session",
}
