// Command localkube runs a real Kubernetes of several nodes on one Linux machine, built from Go modules, without a
// container engine and without downloads other than Go modules and Debian packages.
package main

import (
	"os"

	"github.com/governor-dev/governor/localkube/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
