package networkpolicy

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// User is the user of the API server that reads what the rules follow from.
const User = "system:localkube:networkpolicy"

// ClusterRole are the rights of [User].
func ClusterRole() *rbacv1.ClusterRole {
	verbs := []string{"list", "watch"}
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: User},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods", "namespaces"}, Verbs: verbs},
			{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"networkpolicies"}, Verbs: verbs},
		},
	}
}

// retryAfter is how long a refused script waits before it is tried again.
const retryAfter = time.Second

// Run gives the node its rules until ctx ends, and changes them as pods, namespaces and NetworkPolicies change.
func Run(ctx context.Context, kubeconfig, node string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(lean))
	core, policies := factory.Core().V1(), factory.Networking().V1().NetworkPolicies()
	changed := make(chan struct{}, 1)
	for _, i := range []cache.SharedIndexInformer{core.Pods().Informer(), core.Namespaces().Informer(), policies.Informer()} {
		if _, err := i.AddEventHandler(announce(changed)); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	follow(ctx, changed, func() (w World, err error) {
		w.Node = node
		if w.Pods, err = core.Pods().Lister().List(labels.Everything()); err != nil {
			return w, err
		}
		if w.Namespaces, err = core.Namespaces().Lister().List(labels.Everything()); err != nil {
			return w, err
		}
		w.Policies, err = policies.Lister().List(labels.Everything())
		return w, err
	})
	return nil
}

// announce makes every change one word in the channel, which holds one.
func announce(changed chan<- struct{}) cache.ResourceEventHandlerFuncs {
	say := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { say() }, UpdateFunc: func(any, any) { say() }, DeleteFunc: func(any) { say() },
	}
}

// follow applies the rules of the world after each change, if they differ from the last ones.
func follow(ctx context.Context, changed <-chan struct{}, world func() (World, error)) {
	last := ""
	var retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-retry:
		}
		retry = nil
		w, err := world()
		rules := w.Sorted().Rules()
		if err == nil && rules != last {
			err = apply(ctx, rules)
		}
		if err != nil {
			klog.FromContext(ctx).Error(err, "The rules are not applied")
			retry = time.After(retryAfter)
			continue
		}
		last = rules
	}
}

// apply replaces the node's rules at once.
func apply(ctx context.Context, rules string) error {
	nft := exec.CommandContext(ctx, "nft", "-f", "-")
	nft.Stdin = strings.NewReader(rules)
	if out, err := nft.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, out)
	}
	return nil
}

// lean leaves out what no rule needs, which is most of an object.
func lean(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
		o.SetAnnotations(nil)
	}
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	spec := corev1.PodSpec{NodeName: p.Spec.NodeName, HostNetwork: p.Spec.HostNetwork}
	for _, c := range p.Spec.Containers {
		spec.Containers = append(spec.Containers, corev1.Container{Name: c.Name, Ports: c.Ports})
	}
	p.Spec, p.Status = spec, corev1.PodStatus{Phase: p.Status.Phase, PodIP: p.Status.PodIP}
	return p, nil
}
