package faults_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

const (
	// sharingServers is the number of servers that share a registry and a ClickHouse.
	sharingServers = 3
	// sharingKills is how often one of them is killed.
	sharingKills = 20
	// sharingProjects is the number of projects that get events at the same time.
	sharingProjects = 3
)

// sharedClient sends events of a project to random servers. It uses the same ids as the project's other clients.
type sharedClient struct {
	project int64
	token   string
	urls    []string
	groups  *groupNames

	bad                    []string        // lines that imports refused
	acknowledged, doubtful map[string]bool // uuids of events
	outcome                outcome         // of the acknowledged events
}

// groupNames are the group types that clients know. All clients learn of a new one at once.
type groupNames struct {
	sync.Mutex
	names []string
}

func (g *groupNames) add(name string) {
	g.Lock()
	defer g.Unlock()
	g.names = append(g.names, name)
}

// all returns the groups of an event, by the name of their type. Each key begins with that name.
func (g *groupNames) all() map[string]string {
	g.Lock()
	defer g.Unlock()
	groups := map[string]string{}
	for _, n := range rand.Perm(len(g.names)) {
		groups[g.names[n]] = fmt.Sprintf("%s:%d", g.names[n], rand.IntN(3))
	}
	return groups
}

// outcome is the required result of the acknowledged events, whatever their order.
type outcome struct {
	same map[string]string // by distinct id, another id of the same person
	set  map[string]string // by property, an id of the person with that property
}

func newOutcome() outcome { return outcome{map[string]string{}, map[string]string{}} }

func (o outcome) add(more outcome) {
	maps.Copy(o.same, more.same)
	maps.Copy(o.set, more.set)
}

// someone returns the name of a user or a place. New ones keep appearing, and all clients know them at once.
func someone(what string) string {
	return fmt.Sprintf("%s-%d-%d", what, time.Now().Unix(), rand.IntN(3))
}

// event makes an event, and adds its required result.
func (c *sharedClient) event(out outcome) map[string]any {
	n := rand.IntN(1000)
	user := someone("user")
	device := fmt.Sprintf("%s-device-%d", user, rand.IntN(3))
	properties := map[string]any{}
	name, id := "seen", device
	switch rand.IntN(8) {
	case 0:
		name, id, out.same[device] = "$identify", user, user
		properties["$anon_distinct_id"] = device
	case 1:
		alias := user + "-alias"
		name, id, out.same[alias] = "$create_alias", user, user
		properties["alias"] = alias
	case 2: // the device's owner depends on who comes first
		name, id = "$identify", someone("guest")
		properties["$anon_distinct_id"] = someone("kiosk")
	case 3:
		properties["$process_person_profile"] = false
	case 4:
		for typ, key := range c.groups.all() {
			name = "$groupidentify"
			properties["$group_type"], properties["$group_key"], properties["$group_set"] = typ, key, map[string]any{"size": n}
			break // any of them
		}
	case 5:
		properties["$groups"] = c.groups.all()
	case 6:
		id = someone("kiosk")
		properties["$set"] = map[string]any{"last": n}
	default:
		once := uuid.NewString()
		properties["$set"] = map[string]any{"last": n, once: true}
		out.set[once] = id
		properties["$groups"] = c.groups.all()
	}
	properties[fmt.Sprint("property ", rand.IntN(40))] = []any{n, "text", true}[rand.IntN(3)]
	return map[string]any{"event": name, "distinct_id": id, "uuid": uuid.NewString(), "properties": properties}
}

// send sends a batch to one of the servers.
func (c *sharedClient) send() {
	batch := make([]map[string]any, 1+rand.IntN(8))
	out := newOutcome()
	for n := range batch {
		batch[n] = c.event(out)
	}
	raw, err := json.Marshal(map[string]any{"api_key": c.token, "batch": batch})
	if err != nil {
		panic(err)
	}
	into := c.doubtful
	if answer, err := http.Post(c.urls[rand.IntN(len(c.urls))]+"/batch/", "application/json", bytes.NewReader(raw)); err == nil {
		_ = answer.Body.Close() // only the status matters
		if answer.StatusCode == http.StatusOK {
			into = c.acknowledged
			c.outcome.add(out)
		}
	}
	for _, e := range batch {
		into[fmt.Sprint(e["uuid"])] = true
	}
}

// importOnce imports lines about the same people, and reports what was acknowledged.
func (c *sharedClient) importOnce(admin string) {
	var lines strings.Builder
	ids := make([]string, 30)
	out := newOutcome()
	for n := range ids {
		ids[n] = uuid.NewString()
		user := someone("user")
		groups, err := json.Marshal(c.groups.all())
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&lines, `{"event":"imported","uuid":%q,"distinct_id":"%s-device-%d","timestamp":%q,"properties":{"$groups":%s}}`+"\n",
			ids[n], user, n%3, time.Now().UTC().Format(time.RFC3339), groups)
		if n%10 == 0 {
			one, once := user+"-imported", uuid.NewString()
			fmt.Fprintf(&lines, `{"type":"person","distinct_ids":[%q,%q],"properties":{%q:%d}}`+"\n", user, one, once, n)
			out.same[one], out.set[once] = user, one
		}
	}
	into := c.doubtful
	server := &harness.Server{Admin: admin}
	var report struct {
		Bad []json.RawMessage `json:"bad_lines"`
	}
	if err := server.Ask(fmt.Sprintf("/analytics/import?project=%d", c.project), strings.NewReader(lines.String()), &report); err == nil {
		for _, line := range report.Bad {
			c.bad = append(c.bad, string(line))
		}
		into = c.acknowledged
		c.outcome.add(out)
	}
	for _, id := range ids {
		into[id] = true
	}
}

// TestServersShareARegistry: servers with a shared registry and a shared ClickHouse receive events of the same people and groups at the same time, while
// imports run and servers are killed. Whichever server writes: an id has one person, a group type has one index, and each event is stored once.
func TestServersShareARegistry(t *testing.T) {
	if testing.Short() {
		t.Skip("many restarts take most of a minute")
	}
	servers, dsn := startShared(t)
	urls := make([]string, len(servers))
	for n := range servers {
		urls[n] = servers[n].URL
	}
	clients, keys := make([]*sharedClient, 0, 2*sharingProjects), map[int64]string{}
	groups := map[int64]*groupNames{}
	for n := range sharingProjects {
		id, key := sharedProject(t, servers[0], fmt.Sprint("shared ", n))
		keys[id] = key
		groups[id] = &groupNames{}
		token := captureToken(t, servers[0], id)
		for range 3 {
			clients = append(clients, &sharedClient{
				project: id, token: token, urls: urls, groups: groups[id],
				acknowledged: map[string]bool{}, doubtful: map[string]bool{}, outcome: newOutcome(),
			})
		}
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	for n, c := range clients {
		running.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(rand.IntN(80)) * time.Millisecond):
				}
				if n%3 == 0 && rand.IntN(10) == 0 {
					c.importOnce(servers[rand.IntN(len(servers))].Admin)
				} else {
					c.send()
				}
			}
		})
	}
	for kill := range sharingKills {
		if kill%3 == 0 {
			for _, g := range groups {
				g.add(fmt.Sprint("type", kill))
			}
		}
		time.Sleep(time.Duration(rand.IntN(800)) * time.Millisecond)
		server := servers[rand.IntN(len(servers))]
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Run(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	running.Wait()
	for _, server := range servers {
		server.AwaitDelivery(t)
	}
	events := 0
	for project, key := range keys {
		of := slices.DeleteFunc(slices.Clone(clients), func(c *sharedClient) bool { return c.project != project })
		checkShared(t, servers, project, key, dsn, of)
		for _, c := range of {
			events += len(c.acknowledged)
		}
	}
	t.Logf("%d kills, %d events acknowledged", sharingKills, events)
	if events < 10*sharingKills {
		t.Errorf("only %d events were acknowledged", events)
	}
}

// startShared starts servers that share a registry and a ClickHouse.
func startShared(t *testing.T) (servers []*harness.Server, dsn string) {
	t.Helper()
	engine := embeddedtest.New(t)
	place := filepath.Join(t.TempDir(), "registry.db")
	for range sharingServers {
		servers = append(servers, harness.Start(t, "clickhouse "+engine.DSN(), "registry sqlite:"+place))
	}
	return servers, engine.DSN()
}

// TestServersFindGroupTypes: all servers find their own new group types in a new project at the same time. Each type gets a separate index.
func TestServersFindGroupTypes(t *testing.T) {
	const projects = 3
	servers, _ := startShared(t)
	keys, tokens := map[int64]string{}, map[int64]string{}
	for n := range projects {
		id, key := sharedProject(t, servers[0], fmt.Sprint("types ", n))
		keys[id], tokens[id] = key, captureToken(t, servers[0], id)
	}
	awaitProjects(t, servers, tokens)
	var sending sync.WaitGroup
	for n, server := range servers {
		for _, token := range tokens {
			sending.Go(func() {
				groups := map[string]string{}
				for _, typ := range []int{n, (n + 1) % 3, 3 + n%2} {
					name := string(rune('e' - typ))
					groups[name] = name + ":1"
				}
				raw, err := json.Marshal(map[string]any{"api_key": token, "event": "seen", "distinct_id": "x", "properties": map[string]any{"$groups": groups}})
				if err != nil {
					panic(err)
				}
				answer, err := http.Post(server.URL+"/e/", "application/json", bytes.NewReader(raw))
				if err != nil || answer.StatusCode != http.StatusOK {
					t.Errorf("sending an event: %v %v", answer, err)
					return
				}
				_ = answer.Body.Close() // only the status matters
			})
		}
	}
	sending.Wait()
	for _, server := range servers {
		server.AwaitDelivery(t)
	}
	for project, key := range keys {
		checkSharedTypes(t, servers, project, key)
	}
}

// awaitProjects waits until all servers know some projects: they look for each other's changes once a second.
func awaitProjects(t *testing.T, servers []*harness.Server, tokens map[int64]string) {
	t.Helper()
	for _, server := range servers {
		for project := range tokens {
			harness.Eventually(t, time.Minute, func() error { return server.Ask(fmt.Sprintf("/analytics/projects/%d/tokens", project), nil, nil) })
		}
	}
}

func sharedProject(t *testing.T, server *harness.Server, name string) (id int64, key string) {
	t.Helper()
	id, _ = server.Project(t, name)
	return id, server.Key(t, id, harness.AllScopes, "personal")
}

// checkShared checks what the servers made of a project.
func checkShared(t *testing.T, servers []*harness.Server, project int64, key, dsn string, clients []*sharedClient) {
	t.Helper()
	c := servers[1].Client(project, key)
	there := storedEvents(t, c)
	maybe := map[string]bool{}
	var lost, more []string
	for _, client := range clients {
		for id := range client.acknowledged {
			maybe[id] = true
			if there[id] == 0 {
				lost = append(lost, id)
			}
		}
		maps.Copy(maybe, client.doubtful)
		if len(client.bad) > 0 {
			t.Errorf("project %d: imports left out %v", project, client.bad)
		}
	}
	for id, times := range there {
		if times != 1 || !maybe[id] {
			more = append(more, id)
		}
	}
	if len(lost)+len(more) > 0 {
		t.Errorf("project %d: these acknowledged events are lost: %v\nThese are there more than once, or were not sent: %v", project, lost, more)
	}
	checkSharedPeople(t, c, dsn, clients)
	checkSharedTypes(t, servers, project, key)
}

// checkSharedPeople checks that each id has one person: in queries, and in every version of its row.
func checkSharedPeople(t *testing.T, c *harness.Client, dsn string, clients []*sharedClient) {
	t.Helper()
	for what, sql := range map[string]string{
		"ids with two people":              "select distinct_id, count(distinct person_id) as people from person_distinct_ids group by distinct_id having people > 1",
		"events of one id with two people": "select distinct_id, count(distinct person_id) as people from events group by distinct_id having people > 1",
		"events of another person than their id's": "select distinct e.distinct_id, e.person_id, d.person_id from events e " +
			"join person_distinct_ids d on d.distinct_id = e.distinct_id where d.person_id != e.person_id",
		"ids of no person": "select distinct_id from person_distinct_ids where person_id not in (select id from persons)",
	} {
		if rows := c.Query(t, sql); len(rows) > 0 {
			t.Errorf("project %d: %s: %v", c.Project, what, rows)
		}
	}
	conn := embeddedtest.Connect(t, dsn)
	for what, sql := range map[string]string{
		"versions of an id": "SELECT count() FROM (SELECT distinct_id, version FROM person_distinct_id2 WHERE team_id = %d " +
			"GROUP BY 1, 2 HAVING uniqExact(person_id, is_deleted) > 1)",
		"versions of an override": "SELECT count() FROM (SELECT distinct_id, version FROM person_distinct_id_overrides WHERE team_id = %d " +
			"GROUP BY 1, 2 HAVING uniqExact(person_id, is_deleted) > 1)",
		"versions of a person": "SELECT count() FROM (SELECT id, version FROM person WHERE team_id = %d " +
			"GROUP BY 1, 2 HAVING uniqExact(toJSONString(properties), is_deleted, is_identified, created_at) > 1)",
		"versions of a group": "SELECT count() FROM (SELECT group_type_index, group_key, _timestamp FROM groups WHERE team_id = %d " +
			"GROUP BY 1, 2, 3 HAVING uniqExact(toJSONString(group_properties), created_at) > 1)",
	} {
		var differ uint64
		if err := conn.QueryRow(t.Context(), fmt.Sprintf(sql, c.Project)).Scan(&differ); err != nil {
			t.Fatal(err)
		}
		if differ > 0 {
			t.Errorf("project %d: %d %s have rows that differ", c.Project, differ, what)
		}
	}
	person := map[string]string{}
	for _, row := range c.Query(t, "select distinct_id, person_id from person_distinct_ids limit 10000") {
		if cells, ok := row.([]any); ok {
			person[fmt.Sprint(cells[0])] = fmt.Sprint(cells[1])
		}
	}
	properties := map[string]string{}
	for _, row := range c.Query(t, "select id, properties from persons limit 10000") {
		if cells, ok := row.([]any); ok {
			properties[fmt.Sprint(cells[0])] = fmt.Sprint(cells[1])
		}
	}
	out := newOutcome()
	for _, client := range clients {
		out.add(client.outcome)
	}
	apart, unset := 0, 0
	for one, same := range out.same {
		if person[one] == "" || person[one] != person[same] {
			apart++
		}
	}
	for property, id := range out.set {
		if !strings.Contains(properties[person[id]], property) {
			unset++
		}
	}
	t.Logf("project %d: %d merges and %d properties in %d people", c.Project, len(out.same), len(out.set), len(properties))
	if len(out.same) == 0 || len(out.set) == 0 || apart+unset > 0 {
		t.Errorf("project %d: %d of %d merges and %d of %d properties are lost", c.Project, apart, len(out.same), unset, len(out.set))
	}
}

// checkSharedTypes checks that all servers know the same types, and that each group type column only has groups of that type.
func checkSharedTypes(t *testing.T, servers []*harness.Server, project int64, key string) {
	t.Helper()
	known := func(server *harness.Server) (seen string, err error) {
		c := server.Client(project, key)
		for _, path := range []string{"groups_types/", "property_definitions/?limit=500", "property_definitions/?limit=500&type=person"} {
			answer, err := c.Send(http.MethodGet, path, nil)
			if err != nil {
				return "", fmt.Errorf("%s: %w", path, err)
			}
			if answer.Status != http.StatusOK {
				return "", fmt.Errorf("%s: %d %s", path, answer.Status, answer.Raw)
			}
			seen += string(answer.Raw)
		}
		return strings.ReplaceAll(seen, server.URL, ""), nil
	}
	for n, server := range servers {
		harness.Eventually(t, time.Minute, func() error { // they look for each other's changes once a second
			first, err := known(servers[0])
			if err != nil {
				return err
			}
			other, err := known(server)
			if err != nil {
				return err
			}
			if other != first {
				return fmt.Errorf("project %d: server %d knows the types\n%s\nand server 0\n%s", project, n, other, first)
			}
			return nil
		})
	}
	c := servers[0].Client(project, key)
	var types []struct {
		Name  string `json:"group_type"`
		Index int    `json:"group_type_index"`
	}
	if err := json.Unmarshal(c.Do(t, http.MethodGet, "groups_types/", nil).Raw, &types); err != nil {
		t.Fatal(err)
	}
	if len(types) != 5 {
		t.Errorf("project %d has the group types %v, want five", project, types)
	}
	names := map[string]bool{}
	for _, typ := range types {
		names[typ.Name] = true
		for _, sql := range []string{
			fmt.Sprintf("select distinct properties.$group_%d from events where properties.$group_%[1]d is not null", typ.Index),
			fmt.Sprintf("select distinct $group_%d from events where $group_%[1]d != ''", typ.Index),
		} {
			rows := c.Query(t, sql)
			if len(rows) == 0 { // each event has its groups in both
				t.Errorf("project %d: nothing is of the group type %v", project, typ)
			}
			for _, row := range rows {
				if cells, ok := row.([]any); !ok || !strings.HasPrefix(fmt.Sprint(cells[0]), typ.Name+":") {
					t.Errorf("project %d: the group type %v has the group %v: %s", project, typ, row, sql)
				}
			}
		}
	}
	if len(names) != len(types) {
		t.Errorf("project %d: a group type has two indices: %v", project, types)
	}
}
