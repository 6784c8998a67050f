package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
)

// errNotWhole gives the command an exit status that reports a damaged backup.
var errNotWhole = errors.New("not all backups are whole")

func backupCommand() *cobra.Command {
	cmd := group("backup", "Makes backups of the running server, and restores them", createBackup(), listBackups(), restoreBackup(), unpackBackup())
	cmd.Long = "Makes backups of the running server in a folder, and restores them into a server\nwithout projects. The server reads and writes the folder: it is on its machine."
	return cmd
}

func createBackup() *cobra.Command {
	cmd := leaf("create [--keep <number>] [--clickhouse-to <destination>] <folder>", "Adds a backup to a folder; only what is new takes up space", cobra.ExactArgs(1),
		func(cmd *cobra.Command, args []string) (any, error) {
			folder, err := absolute(args[0])
			if err != nil {
				return nil, err
			}
			created, err := follow[adminapi.Created](cmd, "/analytics/backups/create", adminapi.NewBackup{
				Folder: folder, Keep: int(number(cmd, "keep")), ClickHouseTo: text(cmd, "clickhouse-to"),
			})
			if err == nil && created.Tables == "" {
				fmt.Fprintln(cmd.ErrOrStderr(), "the tables on the ClickHouse server are not in the backup: back them up there, or give --clickhouse-to")
			}
			return created, err
		})
	cmd.Flags().Int64("keep", 0, "how many backups to leave in the folder, the oldest go; 0 leaves all")
	cmd.Flags().String("clickhouse-to", "", "where a ClickHouse server writes its tables to, such as \"Disk('backups', 'name')\"")
	return cmd
}

func listBackups() *cobra.Command {
	cmd := leaf("list [--verify] <folder>", "Lists the backups in a folder, oldest first, and says which are whole", cobra.ExactArgs(1),
		func(cmd *cobra.Command, args []string) (any, error) {
			folder, err := absolute(args[0])
			if err != nil {
				return nil, err
			}
			list, err := follow[adminapi.Backups](cmd, "/analytics/backups/list", adminapi.OldBackups{Folder: folder, Verify: flag(cmd, "verify")})
			if err != nil {
				return nil, err
			}
			for _, b := range list.Backups {
				if !b.Whole {
					fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", b.Name, b.Damage)
					err = errNotWhole
				}
			}
			return list, err
		})
	cmd.Flags().Bool("verify", false, "read all files and compare their checksums")
	return cmd
}

func restoreBackup() *cobra.Command {
	cmd := leaf("restore [--backup <name>] <folder>", "Restores a backup into a server without projects", cobra.ExactArgs(1),
		func(cmd *cobra.Command, args []string) (any, error) {
			folder, err := absolute(args[0])
			if err != nil {
				return nil, err
			}
			return follow[adminapi.Restored](cmd, "/analytics/backups/restore", adminapi.OldBackups{Folder: folder, Name: text(cmd, "backup")})
		})
	cmd.Flags().String("backup", "", "the name of the backup (default: the newest)")
	return cmd
}

func unpackBackup() *cobra.Command {
	cmd := leaf("unpack [--backup <name>] <folder> <new folder>", "Writes the files of a backup by their names, to move tables to a ClickHouse server", cobra.ExactArgs(2),
		func(cmd *cobra.Command, args []string) (any, error) {
			folder, err := absolute(args[0])
			if err != nil {
				return nil, err
			}
			into, err := absolute(args[1])
			if err != nil {
				return nil, err
			}
			return follow[adminapi.Backup](cmd, "/analytics/backups/unpack", adminapi.OldBackups{Folder: folder, Name: text(cmd, "backup"), Into: into})
		})
	cmd.Flags().String("backup", "", "the name of the backup (default: the newest)")
	return cmd
}

// absolute returns the absolute path: the server has another working directory.
func absolute(path string) (string, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("finding the folder: %w", err)
	}
	return full, nil
}

// follow asks the server for something that takes long, and shows the progress. If this command ends, the server stops its work.
func follow[T any](cmd *cobra.Command, uri string, body any) (T, error) {
	var out T
	raw, err := json.Marshal(body)
	if err != nil {
		return out, fmt.Errorf("encoding the request: %w", err)
	}
	resp, err := caddycmd.AdminAPIRequest(text(cmd, "address"), http.MethodPost, uri, http.Header{}, bytes.NewReader(raw))
	if err != nil {
		return out, refusal(text(cmd, "address"), err)
	}
	defer resp.Body.Close()
	bar := newBar(cmd.ErrOrStderr())
	defer bar.end()
	for lines := json.NewDecoder(resp.Body); ; {
		var line adminapi.BackupLine
		switch err := lines.Decode(&line); {
		case err != nil:
			return out, fmt.Errorf("the server ended the response early: %w", err)
		case line.Error != "":
			return out, errors.New(line.Error)
		case line.Result != nil:
			if err := json.Unmarshal(line.Result, &out); err != nil {
				return out, fmt.Errorf("reading the server's answer: %w", err)
			}
			return out, nil
		}
		bar.show(line)
	}
}

// bar shows progress on a terminal, and nothing elsewhere.
type bar struct {
	out   io.Writer // nil: no terminal
	doing string
	shown *progressbar.ProgressBar
}

func newBar(out io.Writer) *bar {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		out = nil
	}
	return &bar{out: out}
}

func (b *bar) show(line adminapi.BackupLine) {
	if b.out == nil {
		return
	}
	if line.Doing != b.doing {
		b.end()
		b.doing, b.shown = line.Doing, progressbar.NewOptions64(max(line.Total, 1), progressbar.OptionSetWriter(b.out), progressbar.OptionSetDescription(line.Doing),
			progressbar.OptionShowBytes(line.Total > 0), progressbar.OptionShowTotalBytes(true), progressbar.OptionClearOnFinish())
	}
	_ = b.shown.Set64(line.Done) // for display only
}

func (b *bar) end() {
	if b.shown != nil {
		_ = b.shown.Finish()
	}
}
