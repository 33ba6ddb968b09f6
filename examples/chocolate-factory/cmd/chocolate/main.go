// Command chocolate is the operator of the chocolate factory: Governor's engine, and what is known about chocolate.
package main

import (
	"github.com/governor-dev/governor/operator"

	"awesome.corp.com/chocolate-factory/factory"
)

// version is set when the binary is built for a release.
var version = "v0.1.0"

func main() { operator.Main(factory.Operator(version, nil)) }
