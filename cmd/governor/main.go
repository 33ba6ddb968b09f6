// Command governor is the operator, and writes the projects of others.
package main

import (
	"github.com/governor-dev/governor/operator"
	"github.com/governor-dev/governor/scaffold"
)

// version is set when the binary is built for a release.
var version = "v0.1.0"

func main() { operator.Main(governor(), scaffold.Command(version)) }

// governor is what this operator has of its own.
func governor() operator.Options {
	return operator.Options{
		Name: "governor", Short: "Runs stateful applications on Kubernetes as a good site reliability engineer would",
		Version: version, APIs: apis(), Register: register, Conversions: conversions(), Converted: converted,
		PolicyStatus: true,
	}
}
