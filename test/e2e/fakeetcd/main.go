//go:build linux

// Command fakeetcd replaces etcd in an image, and runs the real etcd behind it. A test can make it report a false health
// to the kubelet, and give etcd another clock than the rest of the cluster.
//
//	IMPOSTOR_CLOCKS="etcd-1=10m,etcd-2=-10m"  etcd-1 is ten minutes ahead, etcd-2 ten behind
//
// It accepts commands at port 2399: /fine (etcd is frozen and reported as healthy), /ill (etcd serves and is reported
// as unhealthy) and /honest. An answer means that the command has taken effect.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// metricsFlag has the address at which etcd reports its health; fakeetcd uses it, and etcd gets another.
const (
	metricsFlag = "--listen-metrics-urls=http://"
	outside     = "0.0.0.0:2381"
	inside      = "127.0.0.1:12381"
	orders      = ":2399"
)

func main() {
	code, err := run()
	if err != nil {
		log.Fatal(err)
	}
	os.Exit(code)
}

// run runs etcd, and returns its exit code.
func run() (int, error) {
	args, name := rewrite(os.Args[1:])
	offset, err := offsetOf(name, os.Getenv("IMPOSTOR_CLOCKS"))
	if err != nil {
		return 0, err
	}
	etcd, err := start("/opt/etcd/etcd", args, offset)
	if err != nil {
		return 0, err
	}
	forward(etcd)
	l := &liar{etcd: etcd}
	for address, handler := range map[string]http.Handler{outside: http.HandlerFunc(l.health), orders: http.HandlerFunc(l.order)} {
		server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: time.Second}
		go func() { log.Print(server.ListenAndServe()) }()
	}
	state, err := etcd.Wait()
	if err != nil {
		return 0, err
	}
	return max(state.ExitCode(), 0), nil // -1 means killed by a signal, not exited by itself
}

// rewrite gives etcd another address for its health, and finds the member's name.
func rewrite(args []string) (changed []string, name string) {
	for _, arg := range args {
		if arg == metricsFlag+outside {
			arg = metricsFlag + inside
		}
		if is, ok := strings.CutPrefix(arg, "--name="); ok {
			name = is
		}
		changed = append(changed, arg)
	}
	return changed, name
}

func offsetOf(name, clocks string) (time.Duration, error) {
	for pair := range strings.SplitSeq(clocks, ",") {
		if of, offset, ok := strings.Cut(pair, "="); ok && of == name {
			return time.ParseDuration(offset)
		}
	}
	return 0, nil
}

// forward terminates etcd when the pod terminates.
func forward(etcd *os.Process) {
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for s := range ends {
			_ = etcd.Signal(syscall.SIGCONT)
			_ = etcd.Signal(s)
		}
	}()
}

func (l *liar) ask(ctx context.Context, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+inside+path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return http.DefaultClient.Do(r)
}
