package main

import (
	"flag"
	"testing"

	"github.com/governor-dev/governor/operator"
	"github.com/governor-dev/governor/test/docstest"
)

var update = flag.Bool("update", false, "write the reference of the commands")

// TestReference: docs/reference/governor.md has all commands and flags; -update writes it.
func TestReference(t *testing.T) {
	docstest.Reference(t, "../../docs/reference/governor.md", operator.Command(governor()), *update)
}
