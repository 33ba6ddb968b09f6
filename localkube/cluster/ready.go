package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/governor-dev/governor/localkube/process"
)

const (
	apiServerDeadline = 60 * time.Second
	readyDeadline     = 90 * time.Second
	answerDeadline    = time.Second
	askAgainEvery     = 50 * time.Millisecond
)

// Client is a client of the cluster as its administrator.
func (c *Cluster) Client() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.AdminKubeconfig())
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// awaitAPIServer returns when the API server says that it is ready.
func (c *Cluster) awaitAPIServer(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, apiServerDeadline)
	defer cancel()
	for {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		if err == nil {
			return nil
		}
		if dead := c.firstDead(c.etcd(), c.apiServer()); dead != nil {
			return dead
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the API server is not ready after %s: %w; its log is %s", apiServerDeadline, err, c.apiServer().Log)
		}
		time.Sleep(askAgainEvery)
	}
}

// firstDead says which of the programs has ended, and with which last words.
func (c *Cluster) firstDead(programs ...process.Program) error {
	for _, p := range programs {
		if !p.Running() {
			return fmt.Errorf("%s ended; the end of %s:\n%s", p.Group.Name(), p.Log, strings.Join(process.LastLines(p.Log, 8), "\n"))
		}
	}
	return nil
}

// awaitReady returns when every node that is on is ready and DNS answers.
func (c *Cluster) awaitReady(ctx context.Context, say *teller) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyDeadline)
	defer cancel()
	ctx, stop := c.watchDeaths(ctx)
	defer stop()
	reachable := c.reachable(say)
	if err := c.awaitNodes(ctx, client, reachable); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	say.done(fmt.Sprintf("%d nodes ready", len(reachable)))
	if err := c.awaitDNS(ctx, client); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	say.done("DNS answers")
	return nil
}

// watchDeaths gives a context that ends when a program ends that is needed to become ready, with its last words as cause.
func (c *Cluster) watchDeaths(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for ctx.Err() == nil {
			if dead := c.allDead(); dead != nil {
				cancel(dead)
			}
			time.Sleep(10 * askAgainEvery)
		}
	}()
	return ctx, func() { cancel(nil) }
}

func (c *Cluster) allDead() error {
	errs := []error{c.firstDead(c.ControlPlane()...)}
	for _, n := range c.Workers() {
		errs = append(errs, c.firstDead(n.Programs()...))
	}
	return errors.Join(errs...)
}

// reachable are the names of the nodes that are not cut off or frozen; the others are named to the user.
func (c *Cluster) reachable(say *teller) []string {
	var names []string
	for _, n := range c.Workers() {
		if state := c.state(n); state == "on" {
			names = append(names, n.Name)
		} else {
			say.done(fmt.Sprintf("node %s is %s and stays so", n.Name, state))
		}
	}
	return names
}

func (c *Cluster) awaitNodes(ctx context.Context, client kubernetes.Interface, names []string) error {
	list := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "nodes", "", fields.Everything())
	missing := slices.Clone(names)
	_, err := watchtools.UntilWithSync(ctx, list, &corev1.Node{}, nil, func(e watch.Event) (bool, error) {
		if n, ok := e.Object.(*corev1.Node); ok && nodeReady(n) {
			missing = slices.DeleteFunc(missing, func(name string) bool { return name == n.Name })
		}
		return len(missing) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("nodes %v are not ready after %s: %w", missing, readyDeadline, err)
	}
	return nil
}

func nodeReady(n *corev1.Node) bool {
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// awaitDNS returns when the DNS pods are there and each has answered a question.
func (c *Cluster) awaitDNS(ctx context.Context, client kubernetes.Interface) error {
	list := cache.NewListWatchFromClient(client.AppsV1().RESTClient(), "deployments", metav1.NamespaceSystem,
		fields.OneTermEqualSelector("metadata.name", "coredns"))
	_, err := watchtools.UntilWithSync(ctx, list, &appsv1.Deployment{}, nil, func(e watch.Event) (bool, error) {
		d, ok := e.Object.(*appsv1.Deployment)
		return ok && d.Status.ObservedGeneration >= d.Generation && d.Status.ReadyReplicas == *d.Spec.Replicas, nil
	})
	if err != nil {
		return fmt.Errorf("DNS pods are not ready after %s: %w; see `kubectl --kubeconfig %s -n kube-system describe pods`",
			readyDeadline, err, c.AdminKubeconfig())
	}
	return c.askDNS(ctx, client)
}

// askDNS returns when every server of the cluster's DNS has answered. After a machine that died, the API still holds the
// addresses that the servers had before, and says that they are ready: a server that does not answer is looked up again.
func (c *Cluster) askDNS(ctx context.Context, client kubernetes.Interface) error {
	return askAll(ctx, func(ctx context.Context) ([]string, error) { return dnsServers(ctx, client) })
}

func dnsServers(ctx context.Context, client kubernetes.Interface) ([]string, error) {
	found, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceSystem).List(ctx,
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kube-dns"})
	if err != nil {
		return nil, err
	}
	var servers []string
	for _, slice := range found.Items {
		for _, endpoint := range slice.Endpoints {
			servers = append(servers, net.JoinHostPort(endpoint.Addresses[0], "53"))
		}
	}
	return servers, nil
}

// askAll asks all servers, again and again until each answers: a question is one packet, and one may be lost while a
// node's network is still being set up.
func askAll(ctx context.Context, list func(context.Context) ([]string, error)) error {
	for asked := 1; ; asked++ {
		servers, err := list(ctx)
		if err == nil {
			err = askEach(ctx, servers)
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("DNS, asked %d times: %w", asked, err)
		case <-time.After(askAgainEvery):
		}
	}
}

func askEach(ctx context.Context, servers []string) error {
	for _, server := range servers {
		if err := ask(ctx, server); err != nil {
			return fmt.Errorf("%s does not answer: %w", server, err)
		}
	}
	return nil
}

// ask asks one name server for the one name that every cluster has.
func ask(ctx context.Context, server string) error {
	ctx, cancel := context.WithTimeout(ctx, answerDeadline)
	defer cancel()
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, proto, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, proto, server)
	}}
	_, err := resolver.LookupHost(ctx, "kubernetes.default.svc.cluster.local.")
	return err
}
