package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func registryCommand() *cobra.Command {
	move := leaf("move --from <dsn> --to <dsn>", "Moves the registry to another database, and compares the two record by record", cobra.NoArgs,
		func(cmd *cobra.Command, _ []string) (any, error) {
			from, err := registryDSN(cmd, "from")
			if err != nil {
				return nil, err
			}
			to, err := registryDSN(cmd, "to")
			if err != nil {
				return nil, err
			}
			return moveRegistry(cmd.Context(), from, to)
		})
	move.Long = "Copies all that a registry holds into an empty one, and compares the two record by\nrecord. Stop all servers of the registry first, and start them with the new DSN.\nThe old registry keeps what it holds; one of an earlier version is brought up to date\nfirst, as by a server that starts."
	move.Flags().String("from", "", "the registry as it is now, as in the config: sqlite:PATH or postgres://…; it may have placeholders such as {env.DSN}")
	move.Flags().String("to", "", "the empty registry to move to")
	mustRequire(move, "from", "to")
	return group("registry", "Moves the registry between SQLite and PostgreSQL", move)
}

// registryDSN returns the registry that a flag names as the config would: with its placeholders filled in, and checked. It may be empty.
func registryDSN(cmd *cobra.Command, flag string) (string, error) {
	dsn, err := caddy.NewReplacer().ReplaceOrErr(text(cmd, flag), true, true)
	if err == nil {
		err = registry.CheckDSN(dsn)
	}
	if err != nil {
		return "", fmt.Errorf("--%s: %w", flag, err)
	}
	return dsn, nil
}

// moveRegistry moves an existing registry to an empty one. Both DSNs were checked.
func moveRegistry(ctx context.Context, from, to string) (moved registry.Moved, err error) {
	if from == "" {
		return moved, errors.New("--from is empty")
	}
	if to == "" {
		return moved, errors.New("--to is empty")
	}
	if from == to {
		return moved, errors.New("--from and --to are the same registry")
	}
	// A missing file must not be created just to be moved.
	folder := filepath.Join(caddy.AppDataDir(), "analytics")
	state, err := registry.InspectStore(ctx, from, folder)
	if err != nil {
		return moved, err
	}
	if state.Version == 0 {
		return moved, fmt.Errorf("--from: there is no registry at %s", state.Name)
	}
	source, err := openMovable(ctx, from, folder)
	if err != nil {
		return moved, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := openMovable(ctx, to, folder)
	if err != nil {
		return moved, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	return registry.Move(ctx, source, target)
}

func openMovable(ctx context.Context, dsn, folder string) (registry.Movable, error) {
	store, err := registry.OpenStore(ctx, dsn, folder)
	if err != nil {
		return nil, err
	}
	movable, ok := store.(registry.Movable)
	if !ok {
		return nil, errors.Join(errors.New("this registry can't be moved: only one in SQLite or PostgreSQL can"), store.Close())
	}
	return movable, nil
}
