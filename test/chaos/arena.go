package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle/chaos"
)

// operatorSpace is the operator's namespace in dist/install.yaml.
const operatorSpace = "governor-system"

// arena is the cluster that the adversary disturbs.
type arena struct {
	options
	api        client.WithWatch
	connection *rest.Config
	proxy      *proxy // between the operator and the API server; nil without localkube
	all        chaos.Catalogue
	out        io.Writer

	mu sync.Mutex // of out
}

func open(o options) (*arena, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, etcdv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Timeout = -1, 10*time.Second
	api, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	return &arena{options: o, api: api, connection: config, all: o.catalogue(), out: os.Stdout}, err
}

// say prints a line of progress.
func (a *arena) say(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fmt.Fprintf(a.out, format+"\n", args...)
}

// machine runs a command of localkube.
func (a *arena) machine(ctx context.Context, args ...string) error {
	if len(a.localkube) == 0 {
		return fmt.Errorf("%s needs -localkube", strings.Join(args, " "))
	}
	all := append(append([]string{}, a.localkube[1:]...), args...)
	out, err := exec.CommandContext(ctx, a.localkube[0], all...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("localkube %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// ready waits until the nodes are Ready, none is cordoned, and the operator is available.
func (a *arena) ready(ctx context.Context) error {
	return await(ctx, 3*time.Minute, time.Second, func(ctx context.Context) error {
		var nodes corev1.NodeList
		if err := a.api.List(ctx, &nodes); err != nil {
			return err
		}
		for _, n := range nodes.Items {
			if n.Spec.Unschedulable || !nodeReady(n) {
				return fmt.Errorf("node %s is not ready for pods", n.Name)
			}
		}
		var operator appsv1.Deployment
		if err := a.api.Get(ctx, client.ObjectKey{Namespace: operatorSpace, Name: "governor"}, &operator); err != nil {
			return err
		}
		if operator.Status.AvailableReplicas < *operator.Spec.Replicas {
			return fmt.Errorf("%d of %d operators are available", operator.Status.AvailableReplicas, *operator.Spec.Replicas)
		}
		return nil
	})
}

func nodeReady(n corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// await polls until the condition holds, and returns its last error.
func await(ctx context.Context, within, every time.Duration, holds func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	var last error
	for {
		err := holds(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", within, last)
		case <-tick.C:
		}
	}
}

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
