package materialize

import (
	"github.com/caddy-analytics/caddy-analytics/compiler"
)

// split is a breakdown that is a variable.
type split struct {
	name string
}

func (s *split) serves(any) bool { return false }

func (p *Plan) insight(compiler.Env, Options) error {
	return refuse("Insights cannot be materialized yet")
}

func (p *Plan) readInsight(Run, compiler.Env) (*compiler.Compiled, error) {
	return nil, ErrNotServed
}
