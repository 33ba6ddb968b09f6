package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/governor-dev/governor/localkube/process"
)

// BootCommand is the hidden command of localkube that starts a node's programs, run inside the node's namespaces:
// `localkube node-boot node.json`.
const BootCommand = "node-boot"

// NetworkPolicyCommand is the hidden command of localkube that enforces NetworkPolicies inside the node's namespaces:
// `localkube node-networkpolicy node.json`.
const NetworkPolicyCommand = "node-networkpolicy"

const (
	containerdDeadline = 30 * time.Second
	// apiServerPatience is how long a booting node waits for the API server before it starts its kubelet all the same; the
	// kubelet then retries by itself, at growing intervals, which is what makes waiting for it the faster way.
	apiServerPatience = 30 * time.Second
	retryEvery        = 20 * time.Millisecond
)

// Boot starts what does not run yet on the node that the file describes: containerd, the images, kubelet, kube-proxy,
// and what enforces NetworkPolicies.
func Boot(ctx context.Context, specFile string) error {
	n, err := read(specFile)
	if err != nil {
		return err
	}
	if err := n.containerd().Start(); err != nil {
		return err
	}
	if err := n.awaitContainerd(ctx); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return n.importImages(ctx) })
	g.Go(func() error { n.awaitAPIServer(ctx); return nil })
	if err := g.Wait(); err != nil {
		return err
	}
	return errors.Join(n.kubelet().Start(), n.kubeProxy().Start(), n.networkPolicy().Start())
}

// awaitContainerd returns when containerd answers.
func (n Node) awaitContainerd(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, containerdDeadline)
	defer cancel()
	answers := func() bool { return n.ctr(ctx, "version").Run() == nil }
	for !isSocket(n.Socket()) || !answers() {
		if ctx.Err() != nil || !n.containerd().Running() {
			log := n.containerd().Log
			return fmt.Errorf("containerd of node %s does not answer; the end of %s:\n%s", n.Name, log,
				strings.Join(process.LastLines(log, 5), "\n"))
		}
		time.Sleep(retryEvery)
	}
	return nil
}

func isSocket(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode()&os.ModeSocket != 0
}

// awaitAPIServer returns when the API server says that it is ready, or when patience ends.
func (n Node) awaitAPIServer(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, apiServerPatience)
	defer cancel()
	client := http.Client{Transport: &http.Transport{
		// Only the time is asked for; kubelet and kube-proxy do verify the server they talk to.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext:     (&net.Dialer{Timeout: time.Second}).DialContext,
	}}
	for ctx.Err() == nil {
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, n.APIServer+"/readyz", nil)
		if response, err := client.Do(request); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(retryEvery)
	}
}

// ctr is a command of containerd's own client, in the namespace of Kubernetes.
func (n Node) ctr(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, n.binary("ctr"), append([]string{"--address", n.Socket(), "--namespace", "k8s.io"}, args...)...)
}

// importImages imports every archive of the images folder that this node has not imported as it is now.
func (n Node) importImages(ctx context.Context) error {
	archives, err := filepath.Glob(filepath.Join(n.Images, "*.tar"))
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for _, archive := range archives {
		g.Go(func() error { return n.importImage(ctx, archive) })
	}
	return g.Wait()
}

func (n Node) importImage(ctx context.Context, archive string) error {
	info, err := os.Stat(archive)
	if err != nil {
		return err
	}
	stamp := fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano())
	mark := filepath.Join(n.Dir, "imported", filepath.Base(archive))
	if done, _ := os.ReadFile(mark); string(done) == stamp {
		return nil
	}
	if out, err := n.ctr(ctx, "images", "import", archive).CombinedOutput(); err != nil {
		return fmt.Errorf("node %s: import %s: %w: %s", n.Name, filepath.Base(archive), err, out)
	}
	if err := os.MkdirAll(filepath.Dir(mark), 0o755); err != nil {
		return err
	}
	return os.WriteFile(mark, []byte(stamp), 0o644)
}
