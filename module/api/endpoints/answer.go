package endpoints

import (
	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Writer returns the function that writes the bodies of a project's runs in a format.
func (s *Runs) Writer(project *registry.Project, f result.Format) func(dst []byte, p *result.Plan, got cache.Answer) []byte {
	if f.IsFile() {
		return writeFile
	}
	w := writer{Writer: result.Writer{Project: project, Runs: s.Executor.Runs}, results: s.Executor.Cache}
	return w.write
}

// writer writes the JSON bodies of runs.
type writer struct {
	result.Writer
	results *cache.Cache
}

// write writes the body of a run: the members of a query's answer, without those that only debugging shows.
func (w *writer) write(dst []byte, p *result.Plan, got cache.Answer) []byte {
	done, _ := got.Entry.Meta.(*execution.Details)
	if done.Insight != nil {
		more := done.Insight.HasMore != nil && *done.Insight.HasMore // in every run, even of kinds whose results are never cut
		dst = result.RenderInsight(dst, done, &more)
		dst = w.AppendFreshness(dst, p, got)
		dst = append(dst, `,"query_metadata":null,"query_status":null`...)
		return w.finish(dst, p, done)
	}
	kept := got.Entry.Result
	more := kept.More()
	if p.IsPage() {
		more = kept.HasMore(p.Offset, p.Limit)
	}
	dst = append(dst, `{"results":`...)
	dst = p.AppendRows(dst, kept, done.Columns)
	dst = append(dst, ',')
	dst = append(dst, done.Head...)
	if p.IsPage() {
		dst = result.AppendWindow(dst, &more, &p.Limit, &p.Offset)
	} else {
		dst = result.AppendWindow(dst, &more, nil, nil)
	}
	dst = appendCursorMember(dst, w.results, p, got)
	dst = w.AppendFreshness(dst, p, got)
	dst = append(dst, `,"query":null,"metadata":null,"query_metadata":null,"error":null,"query_status":null`...)
	return w.finish(dst, p, done)
}

// finish completes the body of a run with the members that only runs have.
func (w *writer) finish(dst []byte, p *result.Plan, done *execution.Details) []byte {
	if p.Debug {
		dst = w.AppendDebug(dst, p, done)
	}
	dst = append(dst, `,"name":`...)
	dst = jsontext.Append(dst, p.Endpoint.Name)
	dst = append(dst, `,"execution_id":"`...)
	dst = append(dst, done.ExecutionID.String()...)
	dst = append(dst, `","endpoint_version":`...)
	dst = jsontext.AppendInt(dst, p.Version.Number)
	dst = append(dst, `,"endpoint_version_created_at":`...)
	dst = jsontext.AppendTime(dst, p.Version.CreatedAt)
	if !done.Materialized.IsZero() {
		dst = append(dst, `,"endpoint_materialized":true,"endpoint_materialized_at":`...)
		dst = jsontext.AppendTime(dst, done.Materialized)
	}
	return append(dst, '}')
}
