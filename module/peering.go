package module

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/buildinfo"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/nodes"
	"github.com/caddy-analytics/caddy-analytics/module/pagecursor"
	"github.com/caddy-analytics/caddy-analytics/module/peers"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// PeersConfig lets the servers of a deployment ask one another for results, so that a query runs once for all of them.
type PeersConfig struct {
	// The address to listen on, for the other servers only, such as :9443.
	Listen string `json:"listen,omitempty"`
	// The host and port at which the others reach this server. Default: the address it listens on; if it listens on all addresses, this machine's
	// first private one.
	Advertise string `json:"advertise,omitempty"`
}

// CheckPeersListen reports what is wrong with the address to listen on.
func CheckPeersListen(address string) error { return checkAddress(address, ":9443", false) }

// CheckPeersAdvertise reports what is wrong with the address at which others reach a server.
func CheckPeersAdvertise(address string) error { return checkAddress(address, "10.0.0.5:9443", true) }

func checkAddress(address, example string, needsHost bool) error {
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || needsHost && (host == "" || port == "0") || len(address) > 255 {
		return fmt.Errorf("%q is not a valid host and port (want, for example, %s)", address, example)
	}
	return nil
}

// errNotShared refuses peers with a registry that other servers can't share.
var errNotShared = errors.New("needs a registry that several servers share, such as postgres://db/analytics: servers find and authenticate one another through it")

func (a *App) validatePeers() error {
	if a.Peers == nil {
		return nil
	}
	var wrong []error
	if scheme, _, _ := strings.Cut(a.Registry, ":"); scheme == "" || scheme == "sqlite" {
		wrong = append(wrong, fmt.Errorf("peers %w", errNotShared))
	}
	if err := CheckPeersListen(a.Peers.Listen); err != nil {
		wrong = append(wrong, fmt.Errorf("peers listen %w", err))
	}
	if a.Peers.Advertise != "" {
		if err := CheckPeersAdvertise(a.Peers.Advertise); err != nil {
			wrong = append(wrong, fmt.Errorf("peers advertise %w", err))
		}
	}
	return errors.Join(wrong...)
}

// fleet is the set of servers that share the registry.
type fleet struct {
	*nodes.Directory

	peers *peers.Peers // nil if peers are not configured
}

// Ask asks another server.
func (f *fleet) Ask(ctx context.Context, node nodes.Node, request []byte) (peers.Answer, error) {
	return f.peers.Ask(ctx, node, request)
}

// board makes the registry the place where servers keep their records.
type board struct {
	*registry.Registry
	registry.Sharer
}

// openFleet takes a share of the fleet; nil if the registry belongs to this server alone.
func (a *App) openFleet(reg *registry.Registry, key, source string) (*fleet, error) {
	sharer, shared := reg.Sharer()
	switch {
	case !shared && a.Peers != nil:
		return nil, fmt.Errorf("peers %w", errNotShared)
	case !shared:
		return nil, nil
	}
	return keep(a, key, func() (*fleet, func() error, error) {
		identity, err := processIdentity()
		if err != nil {
			return nil, nil, err
		}
		f, err := newFleet(fleetConfig{
			PeersConfig: a.peersConfig(), name: pagecursor.Process(), source: source, identity: identity, board: board{reg, sharer}, logger: a.logger.Named("peers"),
		})
		if err != nil {
			return nil, nil, err
		}
		return f, f.close, nil
	})
}

// processIdentity is the identity of this process. It outlives configs: others know it even while the registry is unavailable, and another identity at the
// same address shows that the process has ended.
var processIdentity = sync.OnceValues(peers.NewIdentity)

// programDigest is the SHA-256 of this process's program, in hexadecimal.
var programDigest = sync.OnceValues(func() (string, error) {
	path := "/proc/self/exe" // also if the file was replaced since
	if goruntime.GOOS != "linux" {
		var err error
		if path, err = os.Executable(); err != nil {
			return "", err
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	return hex.EncodeToString(sum.Sum(nil)), errors.Join(err, file.Close())
})

// source returns a digest of what results depend on besides the registry: where the rows are, and the build of the program.
func (a *App) source() (string, error) {
	build := buildinfo.Read()
	of := []string{build.Version, build.Commit}
	if !build.Exact() && a.peersConfig().Listen != "" {
		program, err := programDigest()
		if err != nil {
			return "", fmt.Errorf("reading the program, to tell its build from those of other nodes: %w", err)
		}
		of = append(of, program)
	}
	if a.ClickHouse == "" {
		of = append(of, "embedded", pagecursor.Process()) // nobody else has these rows
	}
	for _, name := range append([]string{""}, slices.Sorted(maps.Keys(a.Shards))...) {
		dsn := a.Shards[name]
		if name == "" {
			dsn = a.ClickHouse
		}
		if dsn == "" {
			continue
		}
		place, err := clickhouse.Config{DSN: dsn, Cluster: a.Cluster}.Place()
		if err != nil {
			return "", fmt.Errorf("the place of the shard %q: %w", name, err)
		}
		of = append(of, name, place)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", of))
	return hex.EncodeToString(sum[:16]), nil
}

// peersConfig returns how to reach other servers; without an address to listen on, they are not asked.
func (a *App) peersConfig() PeersConfig {
	if a.Peers == nil {
		return PeersConfig{}
	}
	return *a.Peers
}

// openSharing takes a share of the Sharing of rates among nodes; nil if the registry belongs to this server alone.
func (a *App) openSharing(reg *registry.Registry, others *fleet, key string) (*execution.Sharing, error) {
	return keep(a, key, func() (*execution.Sharing, func() error, error) {
		sharer, ok := reg.Sharer()
		if !ok {
			return nil, nil, nil
		}
		s := execution.NewSharing(sharer, others.Nodes)
		return s, s.Close, nil
	})
}

// fleetConfig configures a fleet.
type fleetConfig struct {
	PeersConfig

	name           string // of this server: its cursors begin with it
	identity       *peers.Identity
	source         string // see execution.Peering
	board          nodes.Board
	every, silence time.Duration // see nodes.Config and peers.Config; 0 for their defaults
	now            func() time.Time
	logger         *zap.Logger
}

// newFleet announces this server and looks for others. Without an address to listen on, it neither asks nor answers them.
func newFleet(c fleetConfig) (*fleet, error) {
	known := nodes.Config{
		Board: c.board, Self: nodes.Node{Name: c.name, Version: buildinfo.Read().Version, Form: execution.PeerForm, Source: c.source}, Every: c.every, Now: c.now,
		Logger: c.logger,
	}
	f := new(fleet)
	if c.Listen == "" {
		f.Directory = nodes.Open(known)
		return f, nil
	}
	listener, err := listen(c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listening for other servers: %w", err)
	}
	known.Self.Fingerprint = c.identity.Fingerprint()
	if known.Self.Address = c.Advertise; c.Advertise == "" {
		if known.Self.Address, err = peers.Advertised(listener); err != nil {
			return nil, errors.Join(err, listener.Close())
		}
	}
	f.Directory = nodes.Open(known)
	f.peers = peers.Serve(listener, peers.Config{Identity: c.identity, Directory: f.Directory, Silence: c.silence, Logger: c.logger})
	c.logger.Info("other servers can ask this one", zap.String("node", c.name), zap.String("address", known.Self.Address))
	return f, nil
}

// listen listens like Caddy's servers, so that a config with another registry can take over the address while the previous config still uses it.
func listen(address string) (net.Listener, error) {
	parsed, err := caddy.ParseNetworkAddress(address)
	if err != nil {
		return nil, err
	}
	opened, err := parsed.Listen(context.Background(), 0, net.ListenConfig{})
	if err != nil {
		return nil, err
	}
	listener, ok := opened.(net.Listener)
	if !ok {
		return nil, fmt.Errorf("peers listen needs a TCP address such as :9443, not %s", address)
	}
	return listener, nil
}

func (f *fleet) close() error {
	err := f.Close() // first, so that nobody asks a server that no longer answers
	if f.peers != nil {
		err = errors.Join(err, f.peers.Close())
	}
	return err
}

// servePeers answers other servers until undo is called.
func (rt *runtime) servePeers() (undo func() error) {
	if rt.fleet == nil || rt.fleet.peers == nil {
		return func() error { return nil }
	}
	later := rt.newCatchUp()
	end := rt.fleet.peers.Handle(func(ctx context.Context, from nodes.Node, request []byte) peers.Answer {
		return rt.answerPeer(ctx, from, request, later)
	})
	return func() error { end(); return nil }
}

func (rt *runtime) newCatchUp() *catchUp {
	return &catchUp{refresh: rt.registry.Refresh, revision: func() uint64 { return rt.registry.Snapshot().Revision }}
}

// nodes returns how many servers share the registry.
func (rt *runtime) nodes() int {
	if rt.fleet == nil {
		return 1
	}
	return rt.fleet.Nodes()
}

// answerPeer answers a request of another server. What the request says about its caller and about what is wanted is looked up here.
func (rt *runtime) answerPeer(ctx context.Context, from nodes.Node, request []byte, later *catchUp) peers.Answer {
	start := time.Now()
	asked, err := execution.ReadPeerRequest(request)
	if err != nil {
		rt.logger.Warn("another server asks in a form that can't be read", zap.String("node", from.Name), zap.String("version", from.Version))
		return peers.Declined("the request can't be read")
	}
	if asked.Key != "" && asked.Source != rt.Source { // a page stays what it was when its first page was given out
		return peers.Declined("this node's results come from different data")
	}
	release, ok := rt.Retain()
	if !ok {
		return peers.Declined("the node is stopping, or its config is being replaced")
	}
	defer release()
	if !later.to(ctx, asked.Revision) {
		return peers.Declined("this node's registry is behind")
	}
	snap := rt.registry.Snapshot()
	c, err := rt.tokens.ForPeer(snap, asked, start)
	if err != nil {
		return peers.Declined("the key or token is not valid here")
	}
	c.RequestID = asked.Nonce
	switch {
	case asked.Poll != nil && asked.Poll.Imports:
		return rt.topics.ImportRoutes().PolledByPeer(c, asked)
	case asked.Poll != nil:
		return rt.topics.Queries().PolledByPeer(c, asked)
	}
	if asked.Recipe.Endpoint != "" {
		return rt.topics.EndpointRuns().ForPeer(ctx, c, asked)
	}
	return rt.topics.Queries().ForPeer(ctx, c, asked)
}
