package clickhouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/block"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Batch is rows that are inserted into a table as one block.
type Batch struct {
	Table   string
	Columns []Column
	// Token identifies the rows: ClickHouse ignores a batch if the table already has one with the same token.
	Token string
	// Projects are the projects of the rows: see [Client.Writing].
	Projects []int64
	// Rows yields the values of each row in the order of the columns. They are valid only until the next row.
	Rows iter.Seq[[]any]
}

// insertSettings make an insert synchronous, whole, and true to the text of JSON values: no date or number is
// guessed from a string, no boolean becomes a number.
var insertSettings = []setting{
	{"async_insert", 0},
	{"insert_deduplicate", 1},
	{"insert_distributed_sync", 1},
	{"max_partitions_per_insert_block", 0},
	// Otherwise the engine merges the rows of each block before it writes it: an insert of 10,000 events takes 1.6 times as long. A batch has each
	// row only once, and duplicates between batches remain until their parts are merged anyway.
	{"optimize_on_insert", 0},
	{"date_time_input_format", "basic"},
	{"json_type_escape_dots_in_keys", 1},
	{"type_json_skip_duplicated_paths", 1},
	{"input_format_try_infer_dates", 0},
	{"input_format_try_infer_datetimes", 0},
	{"input_format_json_try_infer_numbers_from_strings", 0},
	{"input_format_json_read_bools_as_numbers", 0},
	{"input_format_json_read_bools_as_strings", 0},
	{"input_format_json_read_numbers_as_strings", 0},
	{"input_format_json_infer_incomplete_types_as_strings", 1},
	{"session_timezone", "UTC"},
}

// Insert writes a batch. If its host dies, another one gets the batch if that can't write the rows twice: the first host did not get it, or the
// tables are replicated and the batch has a token. Errors are like those of [Client.Query]; see [Error.ByData] for those that a single row can cause.
func (c *Client) Insert(ctx context.Context, b Batch) error {
	sql := "INSERT INTO " + b.Table + " (" + b.names() + ")"
	twice := c.replicated.Load() && b.Token != "" // the replicas share the tokens they know
	var refused error
	err := c.send(ctx, twice, func(ctx context.Context, h *host) error {
		server, err := c.server(ctx, h)
		if err != nil {
			return err
		}
		settings := driver.Settings{"insert_deduplication_token": b.Token, "log_comment": insertComment(b.Projects)}
		for _, s := range insertSettings {
			if server.settings[s.name] {
				settings[s.name] = s.value
			}
		}
		done, err := h.insertBlock(ctx, server, settings, sql, b)
		if !done {
			err = h.insertRows(ctx, settings, sql, b)
		}
		if code, _ := exceptionOf(err); physical.IsLog(b.Table) && forbidden[code] { // the host answers: all else may go on
			refused, err = err, nil
		}
		return err
	})
	if err == nil && refused != nil {
		return fmt.Errorf("inserting: %w", classify(refused))
	}
	if err != nil {
		return c.failure(ctx, "inserting", err)
	}
	return nil
}

func (b *Batch) names() string {
	quoted := make([]string, len(b.Columns))
	for i, column := range b.Columns {
		quoted[i] = identifier(column.Name)
	}
	return strings.Join(quoted, ", ")
}

// flatPaths is a setting of servers that accept JSON columns path by path.
const flatPaths = "output_format_native_use_flattened_dynamic_and_json_serialization"

// insertBlock writes a batch in our own encoding. It does nothing and returns false if the server or a column does not support that.
func (h *host) insertBlock(ctx context.Context, s *server, settings driver.Settings, sql string, b Batch) (done bool, err error) {
	if h.http == nil || !s.settings[flatPaths] {
		return false, nil
	}
	columns := make([]block.Column, len(b.Columns))
	for i, column := range b.Columns {
		columns[i] = block.Column{Name: column.Name, Type: column.Type}
	}
	rows, ok := block.New(columns)
	if !ok {
		return false, nil
	}
	for values := range b.Rows {
		if !rows.Append(values) {
			return false, nil
		}
	}
	ctx, cancel := withoutDeadline(ctx)
	defer cancel()
	body := bytes.NewReader(rows.Encode(nil))
	return true, h.http.InsertFormat(driver.Context(ctx, driver.WithSettings(settings)), "Native", sql, body)
}

// insertRows writes a batch with the driver's own encoding.
func (h *host) insertRows(ctx context.Context, settings driver.Settings, sql string, b Batch) error {
	types := make([]driver.ColumnNameAndType, len(b.Columns))
	for i, column := range b.Columns {
		types[i] = driver.ColumnNameAndType{Name: column.Name, Type: column.Type}
	}
	return h.with(ctx, func(ctx context.Context, conn driver.Conn) (err error) {
		batch, err := conn.PrepareBatch(driver.Context(ctx, driver.WithSettings(settings), driver.WithColumnNamesAndTypes(types)), sql)
		if err != nil {
			return err
		}
		defer func() {
			if !batch.IsSent() {
				err = errors.Join(err, batch.Abort())
			}
		}()
		for values := range b.Rows {
			if err := batch.Append(values...); err != nil {
				return err
			}
		}
		return batch.Send()
	})
}

// dataErrors are the codes of errors that one row can cause for a whole batch.
var dataErrors = map[int]bool{
	6: true, 26: true, 27: true, 32: true, 33: true, 36: true, 41: true, 53: true, 72: true, 117: true, 130: true, 131: true, 321: true, 469: true,
}

// ByData reports whether a single row of a batch can be the cause of the error.
func (e *Error) ByData() bool { return dataErrors[e.Code] }
