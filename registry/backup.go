package registry

import (
	"context"
	"errors"
	"fmt"
)

// Copier is a Store that can be copied while it is in use. The copies of all stores have one form, so that each takes those of the others.
type Copier interface {
	// Copy writes all that the store holds, with what is kept but for what nodes keep of themselves, as files into an empty folder: the
	// state of one moment. Others go on writing.
	Copy(ctx context.Context, folder string) error
	// Examine brings a folder that Copy wrote, also with an earlier version of the program, up to date. It reports why the store can't
	// take what it has, such as that a newer version wrote it.
	Examine(ctx context.Context, folder string) error
	// Replace replaces all that the store holds by what a folder has that was examined, but for what nodes keep of themselves. The records
	// are replaced in one step, and put by a revision that is later than any before, so that all who share the store read everything anew
	// and what they have not seen is not written over. A store whose revision is not before is left as it is: ErrStale.
	Replace(ctx context.Context, folder string, before uint64) error
}

// ErrNoCopy says that the store of the registry can't be copied by the server.
var ErrNoCopy = errors.New("this registry can't be copied by the server: use the backup of its database")

// Copy is that of the store: see Copier.
func (r *Registry) Copy(ctx context.Context, folder string) error {
	c, ok := r.store.(Copier)
	if !ok {
		return ErrNoCopy
	}
	return c.Copy(ctx, folder)
}

// Examine is that of the store: see Copier.
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

// Replace replaces all records by those of a copy that was examined, and returns when the snapshot has them. If any were written after the
// snapshot before, nothing is changed: that is ErrStale.
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
