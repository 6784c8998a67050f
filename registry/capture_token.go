package registry

import (
	"context"
	"fmt"
	"time"
)

// CaptureToken is a token that events are captured with. It is not a secret: the pages that send events contain it, and it can only write. Each project has at
// least one. Clients are told to use the newest; older ones are valid until they are revoked.
type CaptureToken struct {
	Token     string    `json:"-"` // phc_…
	CreatedAt time.Time `json:"created_at"`
}

// CaptureTokenPrefix is the prefix of every capture token.
const CaptureTokenPrefix = "phc_"

const (
	captureTokenBytes = 32 // of randomness; 43 characters
	maxCaptureTokens  = 10 // of a project
)

// captureToken is the record of a token.
type captureToken struct {
	project int64
	CaptureToken
}

func readCaptureToken(rec *Record) (entity, error) {
	t := &captureToken{project: rec.Project, CaptureToken: CaptureToken{Token: rec.ID}}
	return t, decode(rec, t)
}

func (c *captureToken) name() recordName {
	return recordName{project: c.project, kind: KindCaptureToken, id: c.Token}
}
func (c *captureToken) unique() []string { return []string{c.Token} }
func (c *captureToken) size() int        { return 0 } // there are few
func (c *captureToken) checkSize() error { return nil }

func (c *captureToken) put(d *draft, p *projectState) (Stored, error) {
	was := c.remove(d, p)
	newer := 0
	for newer < len(p.captureTokens) && p.captureTokens[newer].CreatedAt.After(c.CreatedAt) {
		newer++
	}
	tokens := append(make([]CaptureToken, 0, len(p.captureTokens)+1), p.captureTokens[:newer]...)
	p.captureTokens = append(append(tokens, c.CaptureToken), p.captureTokens[newer:]...)
	d.next.captureTokens = d.next.captureTokens.Set(c.Token, c.project)
	return was, nil
}

func (c *captureToken) remove(d *draft, p *projectState) Stored {
	for at := range p.captureTokens {
		if p.captureTokens[at].Token == c.Token {
			tokens := append(make([]CaptureToken, 0, len(p.captureTokens)), p.captureTokens[:at]...)
			p.captureTokens = append(tokens, p.captureTokens[at+1:]...)
			d.next.captureTokens = d.next.captureTokens.Delete(c.Token)
			return Stored{1, 0}
		}
	}
	return Stored{}
}

// CaptureTokens returns the capture tokens of a project, newest first.
func (s *Snapshot) CaptureTokens(project int64) []CaptureToken {
	if p := s.project(project); p != nil {
		return p.captureTokens
	}
	return nil
}

// CaptureToken returns the capture token that clients of a project are told to use; empty if there is no such project.
func (s *Snapshot) CaptureToken(project int64) string {
	if tokens := s.CaptureTokens(project); len(tokens) > 0 {
		return tokens[0].Token
	}
	return ""
}

// ProjectOfCaptureToken returns the number of the project that a capture token writes to, and whether there is one.
func (s *Snapshot) ProjectOfCaptureToken(token string) (int64, bool) {
	if s.captureTokens == nil {
		return 0, false
	}
	return s.captureTokens.Get(token)
}

// RotateCaptureToken gives a project a new capture token. The others are valid until they are revoked. An unknown project is ErrNotFound, a project that can
// have no more tokens a *FieldError.
func (r *Registry) RotateCaptureToken(ctx context.Context, project int64, now time.Time) (token CaptureToken, err error) {
	err = r.write(ctx, project, func(t *tx) error {
		p, err := t.state()
		if err != nil {
			return err
		}
		if len(p.captureTokens) >= maxCaptureTokens {
			return limitReached("The project has %d already. Revoke one of them first.", maxCaptureTokens)
		}
		token = newCaptureToken(now, p.captureTokens)
		return t.put(&captureToken{project, token})
	})
	if err != nil {
		return CaptureToken{}, fmt.Errorf("making a capture token: %w", err)
	}
	return token, nil
}

// RevokeCaptureToken revokes a capture token: events with it are refused from now on. A project keeps at least one, so revoking the only one is a *FieldError.
// A token that the project does not have is ErrNotFound.
func (r *Registry) RevokeCaptureToken(ctx context.Context, project int64, token string) error {
	err := r.write(ctx, project, func(t *tx) error {
		p, err := t.state()
		if err != nil {
			return err
		}
		switch owner, known := t.next.ProjectOfCaptureToken(token); {
		case !known || owner != project:
			return fmt.Errorf("token %s of project %d: %w", token, project, ErrNotFound)
		case len(p.captureTokens) == 1:
			return limitReached("It is the project's only one. Rotate it first.")
		}
		t.remove(&captureToken{project, CaptureToken{Token: token}})
		return nil
	})
	if err != nil {
		return fmt.Errorf("revoking a capture token: %w", err)
	}
	return nil
}

// AddCaptureTokens gives a capture token to each project that was created before there were any.
func (r *Registry) AddCaptureTokens(ctx context.Context, now time.Time) error {
	for _, project := range r.Snapshot().Projects() {
		if r.Snapshot().CaptureToken(project.ID) != "" {
			continue
		}
		err := r.write(ctx, project.ID, func(t *tx) error {
			if t.next.CaptureToken(project.ID) != "" { // another process was faster
				return nil
			}
			return t.put(&captureToken{project.ID, newCaptureToken(now, nil)})
		})
		if err != nil {
			return fmt.Errorf("making a capture token for project %d: %w", project.ID, err)
		}
	}
	return nil
}

// newCaptureToken makes a token that is newer than the known ones, whatever the clock says.
func newCaptureToken(now time.Time, known []CaptureToken) CaptureToken {
	c := CaptureToken{Token: CaptureTokenPrefix + randomText(captureTokenBytes), CreatedAt: moment(now)}
	if len(known) > 0 && !c.CreatedAt.After(known[0].CreatedAt) {
		c.CreatedAt = known[0].CreatedAt.Add(time.Microsecond)
	}
	return c
}
