package module

import (
	"net/http"
	"time"
)

// rotateBody asks for a new secret for the tokens of a project.
type rotateBody struct {
	Project int64 `json:"project"`
	Revoke  bool  `json:"revoke"`
}

// tokenSecretRecord tells of a secret what is none.
type tokenSecretRecord struct {
	Project   int64     `json:"project"`
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
}

func adminRotateTokens(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readAdmin[rotateBody](r)
	if err != nil {
		return nil, err
	}
	secret, err := rt.registry.RotateTokenSecret(r.Context(), body.Project, body.Revoke, time.Now())
	if err != nil {
		return nil, err // it says what was being done
	}
	return tokenSecretRecord{Project: body.Project, ID: secret.ID, CreatedAt: secret.CreatedAt}, nil
}
