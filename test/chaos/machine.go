package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	does "github.com/governor-dev/governor/kube/chaos"
	"github.com/governor-dev/governor/lifecycle/chaos"
)

// hurtMachine applies the manipulation to a node, the API server or the operator.
func (v *adversary) hurtMachine(ctx context.Context, what chaos.Manipulation, target int) (does.Done, error) {
	switch what.Object.Kind {
	case chaos.APIServer.Kind:
		if what.Detail != chaos.MachineAway {
			return v.hurtAPI(what)
		}
		return v.onMachine(ctx, []string{"apiserver", "stop"}, []string{"apiserver", "start"})
	case chaos.Operator.Kind:
		return v.hurtOperator(ctx, what)
	case chaos.Disk.Kind:
		return v.hurtDisk(ctx, what, target)
	}
	node, err := v.node(ctx, target)
	if err != nil {
		return does.Done{}, err
	}
	if what.Takes == chaos.PartPod {
		v.remember(chaos.Manipulation{Object: chaos.Pod, Takes: chaos.PartPod}, v.membersOn(ctx, node))
	}
	switch what.Detail {
	case chaos.MachineOff:
		return v.onMachine(ctx, []string{"node", "stop", node}, []string{"node", "start", node})
	case chaos.MachineFreeze:
		return v.onMachine(ctx, []string{"node", "pause", node}, []string{"node", "resume", node})
	case chaos.MachineCut:
		return v.onMachine(ctx, []string{"node", "partition", node}, []string{"node", "heal", node})
	case chaos.MachineBlind:
		return v.onMachine(ctx, []string{"node", "partition", node, "--from", "apiserver"}, []string{"node", "heal", node})
	case chaos.MachineDelete:
		return v.deleteNode(ctx, node)
	}
	return v.cordon(ctx, node, what.Detail == chaos.MachineDrain)
}

func (v *adversary) onMachine(ctx context.Context, do, undo []string) (does.Done, error) {
	done := does.Done{
		Objects: []string{strings.Join(do, " ")},
		Undo:    func(ctx context.Context) error { return v.machine(ctx, undo...) },
	}
	return done, v.machine(ctx, do...)
}

// cordon makes the node unschedulable, and evicts the members from it for a drain. Those
// that the disruption budget protects stay, as a drain that waits would find them.
func (v *adversary) cordon(ctx context.Context, name string, drain bool) (does.Done, error) {
	schedulable := func(ctx context.Context, unschedulable string) error {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return v.api.Patch(ctx, node, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"unschedulable":`+unschedulable+`}}`)))
	}
	done := does.Done{Objects: []string{name}, Undo: func(ctx context.Context) error { return schedulable(ctx, "null") }}
	err := schedulable(ctx, "true")
	for _, p := range v.members(ctx) {
		if err != nil || !drain || p.Spec.NodeName != name {
			continue
		}
		bare := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
		if refused := v.api.SubResource("eviction").Create(ctx, bare, &policyv1.Eviction{ObjectMeta: bare.ObjectMeta}); refused == nil {
			done.Objects = append(done.Objects, p.Name)
		}
	}
	return done, err
}

// membersOn are the names of the members' pods on the node.
func (v *adversary) membersOn(ctx context.Context, node string) (names []string) {
	for _, p := range v.members(ctx) {
		if p.Spec.NodeName == node {
			names = append(names, p.Name)
		}
	}
	return names
}

// deleteNode deletes the Node object. Its kubelet creates it only at its start, so the undoing creates it.
func (v *adversary) deleteNode(ctx context.Context, name string) (does.Done, error) {
	node := &corev1.Node{}
	if err := v.get(ctx, "", name, node); err != nil {
		return does.Done{}, err
	}
	again := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: node.Labels, Annotations: node.Annotations}, Spec: node.Spec}
	undo := func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(v.api.Create(ctx, again.DeepCopy()))
	}
	return does.Done{Objects: []string{name}, Undo: undo}, v.api.Delete(ctx, node)
}

func (v *adversary) hurtOperator(ctx context.Context, what chaos.Manipulation) (does.Done, error) {
	if isTrap(what) {
		return v.setTrap(ctx, what)
	}
	key := client.ObjectKey{Namespace: operatorSpace, Name: "governor"}
	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	patched := func(ctx context.Context, patch string) error {
		return v.api.Patch(ctx, operator.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	switch what.Detail {
	case chaos.MachineNone:
		undo := func(ctx context.Context) error { return patched(ctx, `{"spec":{"replicas":2}}`) }
		return does.Done{Objects: []string{key.Name}, Undo: undo}, patched(ctx, `{"spec":{"replicas":0}}`)
	case chaos.MachineRestart:
		at := time.Now().Format(time.RFC3339)
		return does.Done{Objects: []string{key.Name}}, patched(ctx, `{"spec":{"template":{"metadata":{"annotations":{"chaos.governor.dev/at":"`+at+`"}}}}}`)
	case chaos.MachineTwo:
		return v.twoOperators(ctx)
	case chaos.MachineOther:
		return v.otherRelease(ctx, key)
	}
	return does.Done{Objects: []string{key.Name}}, v.api.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(operatorSpace),
		client.MatchingLabels{"app.kubernetes.io/name": "governor"}, client.GracePeriodSeconds(0))
}

// otherRelease has the operator's Deployment run another image. Each of the two rolling updates has both releases run beside each other.
func (v *adversary) otherRelease(ctx context.Context, key client.ObjectKey) (does.Done, error) {
	var operator appsv1.Deployment
	if err := v.get(ctx, key.Namespace, key.Name, &operator); err != nil {
		return does.Done{}, err
	}
	run := func(ctx context.Context, image string) error {
		patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}]`, image)
		return v.api.Patch(ctx, operator.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(patch)))
	}
	own := operator.Spec.Template.Spec.Containers[0].Image
	undo := func(ctx context.Context) error { return run(ctx, own) }
	return does.Done{Objects: []string{v.other}, Undo: undo}, run(ctx, v.other)
}

// twoOperators freezes the leader until another one has its Lease. When it resumes, it considers
// itself the leader until it checks.
func (v *adversary) twoOperators(ctx context.Context) (does.Done, error) {
	leader := func(ctx context.Context) (string, error) {
		var lease coordinationv1.Lease
		err := v.get(ctx, operatorSpace, "governor.governor.dev", &lease)
		if err != nil || lease.Spec.HolderIdentity == nil {
			return "", errors.Join(err, does.ErrNothing)
		}
		pod, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
		return pod, nil
	}
	name, err := leader(ctx)
	if err != nil {
		return does.Done{}, err
	}
	var pod corev1.Pod
	if err := v.get(ctx, operatorSpace, name, &pod); err != nil {
		return does.Done{}, err
	}
	done := does.Done{Objects: []string{name}, Undo: func(context.Context) error { return signalPod(pod, syscall.SIGCONT) }}
	if err := signalPod(pod, syscall.SIGSTOP); err != nil {
		return done, err
	}
	return done, await(ctx, 30*time.Second, 500*time.Millisecond, func(ctx context.Context) error {
		if now, err := leader(ctx); err != nil || now == name {
			return fmt.Errorf("%s still has the Lease: %w", name, errors.Join(err, errors.New("wait")))
		}
		return nil
	})
}
