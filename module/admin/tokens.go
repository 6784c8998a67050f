package admin

import (
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
)

func (s *Server) rotateTokens(_ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readBody[adminapi.RotateTokens](r)
	if err != nil {
		return nil, err
	}
	secret, err := s.Registry.RotateTokenSecret(r.Context(), body.Project, body.Revoke, time.Now())
	if err != nil {
		return nil, err // the error says what was being done
	}
	return adminapi.TokenSecret{Project: body.Project, ID: secret.ID, CreatedAt: secret.CreatedAt}, nil
}
