// Command chocolate-machine is a machine with an HTTP API.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"awesome.corp.com/chocolate-factory/machine"
	"awesome.corp.com/chocolate-factory/machine/server"
)

func main() {
	address := flag.String("address", ":8080", "where to serve")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "unknown argument %q; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	m := machine.New(rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	s := &http.Server{Addr: *address, Handler: server.New(m, time.Now), ReadHeaderTimeout: 5 * time.Second}
	fmt.Fprintln(os.Stderr, s.ListenAndServe())
	os.Exit(1)
}
