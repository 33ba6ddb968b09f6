//go:build linux

// Command fakeetcd stands in etcd's place in an image, and runs the real etcd behind it. A test can have it lie to the
// kubelet about etcd's health, and give etcd another clock than the rest of the world has.
//
//	IMPOSTOR_CLOCKS="etcd-1=10m,etcd-2=-10m"  etcd-1 is ten minutes ahead, etcd-2 ten behind
//
// At port 2399 it takes orders: /fine (etcd stands still, its health is said to be fine), /ill (etcd serves, its health
// is said to be bad) and /honest. An order has been carried out when it is answered.
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

// metricsFlag is where etcd tells its health; the fake takes that place, and etcd gets another.
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

// run runs etcd, and returns the code with which it ended.
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
	return max(state.ExitCode(), 0), nil // -1 is that of who was killed: by this machine, not by itself
}

// rewrite gives etcd another place to tell its health, and finds the member's name.
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

// forward lets etcd end when the pod is to end.
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
