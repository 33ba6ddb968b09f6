package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	appv1 "github.com/governor-dev/governor/api/app/v1alpha1"
)

// namespace is the namespace of all objects.
const namespace = "bench"

// testEnv is a real API server with Kubernetes' own ReplicaSet controller, the operator, and
// fake kubelets.
type testEnv struct {
	client.Client

	env     *envtest.Environment
	folder  string
	cache   cache.Cache
	stop    context.CancelFunc
	procs   []*exec.Cmd
	metrics string
	pending chan *corev1.Pod
	news    chan struct{}
	sets    int
}

func open(ctx context.Context, o options) (s *testEnv, err error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		return nil, errors.New("set KUBEBUILDER_ASSETS to a folder with kube-apiserver and etcd")
	}
	s = &testEnv{pending: make(chan *corev1.Pod, 1<<16), news: make(chan struct{}, 1), stop: func() {}}
	if s.folder, err = os.MkdirTemp("", "governor-bench-"); err != nil {
		return nil, err
	}
	s.env = &envtest.Environment{CRDDirectoryPaths: []string{o.crds}, ErrorIfCRDPathMissing: true}
	s.env.ControlPlane.GetAPIServer().Configure().Append("disable-admission-plugins", "ServiceAccount")
	if err = s.start(ctx, assets, o); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *testEnv) start(ctx context.Context, assets string, o options) error {
	config, err := s.env.Start()
	if err != nil {
		return fmt.Errorf("cannot start the API server: %w", err)
	}
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), appv1.AddToScheme(scheme)); err != nil {
		return err
	}
	if s.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if s.cache, err = cache.New(config, cache.Options{Scheme: scheme}); err != nil {
		return err
	}
	if err := s.startKubelets(ctx); err != nil {
		return err
	}
	space := &corev1.Namespace{}
	space.Name = namespace
	if err := s.Create(ctx, space); err != nil {
		return err
	}
	return s.controllers(ctx, assets, o)
}

// controllers starts both controllers, each as a separate process and in the same user
// group, so that API priority and fairness treats both the same.
func (s *testEnv) controllers(ctx context.Context, assets string, o options) error {
	programs, err := filepath.EvalSymlinks(filepath.Join(assets, "kube-apiserver"))
	if err != nil {
		return err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	s.metrics = "http://" + address + "/metrics"
	for user, command := range map[string][]string{
		"replicasets": {
			filepath.Join(filepath.Dir(programs), "kube-controller-manager"), "--controllers=replicaset-controller",
			"--leader-elect=false", "--kube-api-qps=10000", "--kube-api-burst=10000", "--secure-port=0", "--kubeconfig=",
		},
		"governor": {o.operator, "run", "--leader-elect=false", "--health-address=0", "--metrics-secure=false", "--metrics-address=" + address},
	} {
		path, err := s.writeKubeconfig(user)
		if err != nil {
			return err
		}
		if user == "replicasets" {
			command[len(command)-1] += path
		}
		if err := s.spawn(ctx, o, user, path, command); err != nil {
			return err
		}
	}
	return nil
}

func (s *testEnv) spawn(ctx context.Context, o options, user, kubeconfig string, command []string) error {
	log, err := os.Create(filepath.Join(filepath.Dir(o.out), "bench-podset-"+user+".log"))
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		return err
	}
	s.procs = append(s.procs, cmd)
	return nil
}

func (s *testEnv) writeKubeconfig(user string) (string, error) {
	u, err := s.env.AddUser(envtest.User{Name: user, Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return "", err
	}
	raw, err := u.KubeConfig()
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.folder, user)
	return path, os.WriteFile(path, raw, 0o600)
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

// startKubelets makes pods run and become ready as soon as they are seen.
func (s *testEnv) startKubelets(ctx context.Context) error {
	ctx, s.stop = context.WithCancel(ctx)
	pods, err := s.cache.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return err
	}
	_, err = pods.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if p := obj.(*corev1.Pod); p.Status.Phase == corev1.PodPending {
				s.pending <- p
			}
			s.notify()
		},
		UpdateFunc: func(any, any) { s.notify() },
		DeleteFunc: func(any) { s.notify() },
	})
	if err != nil {
		return err
	}
	for _, c := range contenders {
		sets, err := s.cache.GetInformer(ctx, c.fresh(""))
		if err != nil {
			return err
		}
		told := toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(any, any) { s.notify() }}
		if _, err := sets.AddEventHandler(told); err != nil {
			return err
		}
	}
	const kubelets = 8
	for range kubelets {
		go s.kubelet(ctx)
	}
	go func() { _ = s.cache.Start(ctx) }()
	if !s.cache.WaitForCacheSync(ctx) {
		return errors.New("the cache does not sync")
	}
	return nil
}

func (s *testEnv) kubelet(ctx context.Context) {
	const ready = `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-s.pending:
			_ = s.Status().Patch(ctx, p.DeepCopy(), client.RawPatch("application/strategic-merge-patch+json", []byte(ready)))
		}
	}
}

// notify wakes a waiting until, if there is one.
func (s *testEnv) notify() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// until waits until holds returns true. It checks at every change of a pod, and
// periodically.
func (s *testEnv) until(ctx context.Context, what string, holds func() (bool, error)) error {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		is, err := holds()
		if is || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not yet: %s: %w", what, ctx.Err())
		case <-s.news:
		case <-look.C:
		}
	}
}

func (s *testEnv) close() {
	s.stop()
	for _, cmd := range s.procs {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	_ = s.env.Stop()
	_ = os.RemoveAll(s.folder)
}
