// Command gendocs writes docs/functions.md from the table of functions. Run it by go generate in compiler/schema.
package main

import (
	"errors"
	"fmt"
	"os"
)

// page is the path of the page, relative to compiler/schema.
const page = "../../docs/functions.md"

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "writing the page of functions:", err)
		os.Exit(1)
	}
}

func write() error {
	file, err := os.Create(page)
	if err != nil {
		return err
	}
	_, err = file.Write(functionsPage())
	return errors.Join(err, file.Close())
}
