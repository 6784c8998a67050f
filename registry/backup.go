package registry

import (
	"context"
	"errors"
	"fmt"
)

// Copier is a Store that can be copied while it is in use. All stores write copies in the same form, so each store accepts those of the others.
type Copier interface {
	// Copy writes all that the store holds as of one moment as files into an empty folder. That includes kept data, but not what nodes keep about themselves.
	// Others can go on writing.
	Copy(ctx context.Context, folder string) error
	// Examine brings a folder that Copy wrote up to date, even one of an earlier version of the program. Its error says why the store can't take the content, for
	// example because a newer version wrote it.
	Examine(ctx context.Context, folder string) error
	// Replace replaces all that the store holds, except what nodes keep about themselves, with the content of an examined folder. It replaces the records in one
	// step, with a revision that is later than any before, so that all processes that share the store read everything anew and do not overwrite what they have not
	// seen. If the revision of the store is not before, nothing changes: ErrStale.
	Replace(ctx context.Context, folder string, before uint64) error
}

// ErrNoCopy says that the server can't copy the store of the registry.
var ErrNoCopy = errors.New("this registry can't be copied by the server: use the backup of its database")

// Copy copies the store: see Copier.
func (r *Registry) Copy(ctx context.Context, folder string) error {
	c, ok := r.store.(Copier)
	if !ok {
		return ErrNoCopy
	}
	return c.Copy(ctx, folder)
}

// Examine examines a copy of the store: see Copier.
func (r *Registry) Examine(ctx context.Context, folder string) error {
	c, ok := r.store.(Copier)
	if !ok {
		return ErrNoCopy
	}
	if err := c.Examine(ctx, folder); err != nil {
		return fmt.Errorf("reading the copy of a registry: %w", err)
	}
	return nil
}

// Replace replaces all records with those of an examined copy, and returns when the snapshot has them. If any records were written after the snapshot before,
// nothing changes: ErrStale.
func (r *Registry) Replace(ctx context.Context, folder string, before *Snapshot) error {
	c, ok := r.store.(Copier)
	if !ok {
		return ErrNoCopy
	}
	if err := r.wait(ctx); err != nil {
		return err
	}
	defer r.next()
	if err := c.Replace(ctx, folder, before.Revision); err != nil {
		return fmt.Errorf("replacing the registry: %w", err)
	}
	_, err := r.catchUp(context.WithoutCancel(ctx))
	return err
}
