package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is the operator as a separate process, as installed. The benchmark adds nothing
// to its memory or CPU time.
type process struct {
	cmd     *exec.Cmd
	metrics string
	log     *os.File
	done    chan struct{}
}

// startOperator returns when the operator's caches are synced and it reconciles.
func startOperator(ctx context.Context, api *api, o options) (*process, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(filepath.Dir(o.out), "bench-operator.log"))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, o.operator, "run", "--leader-elect=false", "--health-address=0", "--metrics-secure=false", "--metrics-address="+address)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+api.kubeconfig)
	cmd.Stdout, cmd.Stderr = log, log
	p := &process{cmd: cmd, metrics: "http://" + address + "/metrics", log: log, done: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = cmd.Wait(); close(p.done) }()
	return p, p.waitRunning(ctx)
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

func (p *process) waitRunning(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for p.metric(ctx, `governor_app_running{app="memcached"}`) != 1 {
		select {
		case <-p.done:
			return fmt.Errorf("the operator ended; see %s", p.log.Name())
		case <-ctx.Done():
			p.stop()
			return fmt.Errorf("the operator does not run: %w; see %s", ctx.Err(), p.log.Name())
		case <-tick.C:
		}
	}
	return nil
}

// stop ends the operator and waits for its exit.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.done
	_ = p.log.Close()
}

// metric returns one of the operator's metrics, or 0 if it does not exist.
func (p *process) metric(ctx context.Context, name string) float64 {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.metrics, nil)
	if err != nil {
		return 0
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	raw, _ := io.ReadAll(resp.Body)
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return n
		}
	}
	return 0
}

// reconciles returns the number of reconciles of the operator.
func (p *process) reconciles(ctx context.Context) float64 {
	total := 0.0
	for _, result := range []string{"success", "requeue", "requeue_after", "error"} {
		total += p.metric(ctx, fmt.Sprintf(`controller_runtime_reconcile_total{controller="memcached",result=%q}`, result))
	}
	return total
}

// cpu returns the CPU time of the operator.
func (p *process) cpu() (time.Duration, error) {
	s, err := readStat(p.proc("stat"))
	return s.cpu, err
}

// rss returns the operator's resident memory in bytes.
func (p *process) rss() (int64, error) {
	raw, err := os.ReadFile(p.proc("status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("no VmRSS in %s", p.proc("status"))
}

func (p *process) proc(name string) string {
	return filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), name)
}
