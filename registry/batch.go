package registry

import (
	"context"
	"fmt"
	"time"
)

// Batch is a set of changes to the variables and endpoints of one project. All of them happen, in the order of the fields, or none. Apply and Preview set the
// projects of its parts.
type Batch struct {
	NewVariables []NewVariable
	Variables    []NamedVariableUpdate
	NewEndpoints []NewEndpoint
	Endpoints    []NamedEndpointUpdate
	Deleted      []string // names of endpoints
}

// NamedVariableUpdate is a change to one variable.
type NamedVariableUpdate struct {
	ID string
	VariableUpdate
}

// NamedEndpointUpdate is a change to one endpoint.
type NamedEndpointUpdate struct {
	Name string
	EndpointUpdate
}

// Apply makes the changes of a batch in one transaction. Mistakes are *FieldError; what does not exist is ErrNotFound. After an error, nothing is changed.
func (r *Registry) Apply(ctx context.Context, project int64, b Batch, now time.Time) error {
	at := moment(now)
	made, err := b.prepare(project, at)
	if err != nil {
		return err
	}
	err = r.write(ctx, project, func(t *tx) error {
		if _, err := t.state(); err != nil {
			return err
		}
		for _, v := range made.variables {
			if err := t.addVariable(v); err != nil {
				return fmt.Errorf("creating variable %q: %w", v.Name, err)
			}
		}
		for _, u := range b.Variables {
			if _, err := t.updateVariable(u.ID, u.VariableUpdate); err != nil {
				return fmt.Errorf("updating variable %q: %w", u.ID, err)
			}
		}
		for _, e := range made.endpoints {
			if err := t.addEndpoint(e); err != nil {
				return fmt.Errorf("creating endpoint %q: %w", e.Name, err)
			}
		}
		for _, u := range b.Endpoints {
			if _, err := t.updateEndpoint(u.Name, u.EndpointUpdate, at); err != nil {
				return fmt.Errorf("updating endpoint %q: %w", u.Name, err)
			}
		}
		for _, name := range b.Deleted {
			if err := t.deleteEndpoint(name, at); err != nil {
				return fmt.Errorf("deleting endpoint %q: %w", name, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("changing endpoints together: %w", err)
	}
	return nil
}

// prepared holds what is new in a batch.
type prepared struct {
	variables []Variable
	endpoints []Endpoint
}

// prepare checks all that can be checked without the store.
func (b Batch) prepare(project int64, at time.Time) (made prepared, err error) {
	for _, n := range b.NewVariables {
		n.Project = project
		v, err := n.variable(at)
		if err != nil {
			return made, fmt.Errorf("creating variable %q: %w", n.Name, err)
		}
		made.variables = append(made.variables, v)
	}
	for _, n := range b.NewEndpoints {
		n.Project = project
		if n.FreshnessSeconds == 0 {
			n.FreshnessSeconds = DefaultFreshness
		}
		if err := n.validate(); err != nil {
			return made, fmt.Errorf("creating endpoint %q: %w", n.Name, err)
		}
		made.endpoints = append(made.endpoints, n.endpoint(at))
	}
	for _, u := range b.Endpoints {
		if err := u.validate(); err != nil {
			return made, fmt.Errorf("updating endpoint %q: %w", u.Name, err)
		}
	}
	return made, nil
}

// Preview returns the snapshot as it would be with the variables of a batch: queries of the same batch are checked against it. Mistakes are *FieldError; an
// unknown variable is ErrNotFound.
func (s *Snapshot) Preview(project int64, b Batch, now time.Time) (*Snapshot, error) {
	made, err := Batch{NewVariables: b.NewVariables}.prepare(project, moment(now))
	if err != nil {
		return nil, err
	}
	d := newDraft(s)
	for _, v := range made.variables {
		_ = d.put(&v) // a variable can always be used
	}
	for _, u := range b.Variables {
		known := s.VariableByID(project, u.ID)
		if known == nil {
			return nil, fmt.Errorf("updating variable %q: %w", u.ID, ErrNotFound)
		}
		v := *known
		if err := u.apply(&v); err != nil {
			return nil, fmt.Errorf("updating variable %q: %w", v.Name, err)
		}
		_ = d.put(&v)
	}
	return d.finish(s.Revision), nil
}
