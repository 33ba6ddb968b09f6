package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
	"github.com/governor-dev/governor/lifecycle/chaos"
)

// remedies are what a person does about each reason of Stalled. A reason that is not here is a
// violation when an instance gives it, and so is a message that does not say what is done here.
var remedies = map[string][]remedy{
	"AlarmRaised": {
		{regexp.MustCompile(`(\S+) has raised CORRUPT.*CORRUPT: delete the volume of that member`), deleteVolume},
		{regexp.MustCompile(`has raised NOSPACE.*NOSPACE: raise spec\.options\.quota .*, or compact and defragment`), raiseQuota},
	},
	"AuthEnabled": {
		{regexp.MustCompile(`etcdctl user add (\S+) --no-password && etcdctl user grant-role (\S+) root`), grantRoot},
		{regexp.MustCompile(`etcdctl auth disable`), disableAuth},
	},
	"AuthoritySwapped": {
		{regexp.MustCompile(`or delete the pod of (\S+) to accept an interruption`), deletePodOf},
		{regexp.MustCompile(`Restore the former Secrets`), restoreSecrets},
	},
	"CertificatesUnusable": {{regexp.MustCompile(`the Secret "([^"]+)"`), restoreSecrets}},
	"ChangeFailed":         {{regexp.MustCompile(`Correct the spec`), correct(formerPod, formerImage)}},
	"ClusterIDChanged":     {{regexp.MustCompile(`--subresource=status --type=merge -p '(.*)'`), patchStatus}},
	"ContainerCannotStart": {{regexp.MustCompile(`Correct spec\.image, spec\.resources|Correct spec\.template`), formerSpec}, {regexp.MustCompile(`^(\S+): .* then delete the pod`), deletePodOf}, {regexp.MustCompile(`Correct spec\.pod, spec\.image`), correct(formerPod, formerImage)}},
	"CrashLoopBackOff":     {{regexp.MustCompile(`and correct (the spec|spec\.template)`), formerSpec}, {regexp.MustCompile(`Correct spec\.pod`), correct(formerPod)}},
	"DeletionStuck":        {{regexp.MustCompile(`the (\w+) (\S+) is being deleted.*remove it with kubectl edit`), removeFinalizer}},
	"FailedCreate":         {{regexp.MustCompile(`correct spec\.pod`), correct(formerPod)}},
	"Forbidden":            {{regexp.MustCompile(`Grant the operator what it lacks`), grantOperator}},
	"ImagePullBackOff":     {{regexp.MustCompile(`Correct spec\.image or spec\.version|Correct the image in spec\.template`), formerSpec}, {regexp.MustCompile(`Correct spec\.version, spec\.repository or spec\.image`), correct(formerImage)}},
	"MembersExpelled":      {{regexp.MustCompile(`kubectl -n \S+ delete statefulset (.+?); the volumes stay`), deleteSets}},
	"MemberUnidentified":   {{regexp.MustCompile(`\((\S+)\), .*or remove the member`), removeStray}},
	"NameTaken":            {{regexp.MustCompile(`still runs: (.*?)\. .*Delete it`), deleteNamed}, {regexp.MustCompile(`(\w+ "?[-.\w]+"?) exists .*(Delete or rename|Remove or rename)`), deleteNamed}},
	"PodsRefused":          {{regexp.MustCompile(`Change the policy that refuses them, or the spec`), formerSpec}},
	"RolloutStuck":         {{regexp.MustCompile(`or change the spec|Look at their events and logs`), formerSpec}},
	"TemplateRefused":      {{regexp.MustCompile(`Correct spec\.template`), formerSpec}, {regexp.MustCompile(`Correct the spec, or create what the API server names`), correct(formerPod, formerImage)}},
	quorumLost:             {{regexp.MustCompile(`Governor deletes nothing\. If you can restore a lost volume`), nil}},
	"Refused":              {{regexp.MustCompile(`Change the spec accordingly`), correct(formerPod, formerImage)}},
	"Unschedulable":        {{regexp.MustCompile(`or change (spec\.memory|the scheduling requirements in spec\.template)`), formerSpec}, {regexp.MustCompile(`Add nodes, or change spec\.pod`), correct(formerPod)}},
	"UnknownVersion":       {{regexp.MustCompile(`^spec\.version`), correct(formerVersion)}},
	"VersionRefused":       {{regexp.MustCompile(`Set spec\.version to (3\.\d+(?:\.\d+)?) or newer`), setVersion}},
}

// unreachable are the reasons that no manipulation of the catalogue leads to, with what it would
// take. An instance that gives one of them violates a promise.
var unreachable = map[string]string{
	"CannotRender":         "a spec that passes validation, and that the operator cannot render",
	"GrowthNeedsLearners":  "a release of etcd before 3.4",
	"MembersDivided":       "a member that an administrator starts with --force-new-cluster",
	"MembersShareID":       "a data directory that an administrator copies to another member",
	"NamespaceTerminating": "the namespace is deleted after the oracle has judged",
	"OperatorBug":          "a panic in the operator's rules",
	"QuotaExceeded":        "a ResourceQuota in the namespace",
	"QuotaTooSmall":        "a quota below the size of the database, which has a few keys here",
	"TemplateUnverified":   "an admission webhook that does not answer",
	"VolumeCannotGrow":     "a StorageClass that does not allow volumes to grow",
	"VolumeMissing":        "a StorageClass that does not exist",
}

// formers give a part of the spec back what it was at the beginning of the round.
type former func(spec, was *etcdv1.EtcdClusterSpec, status etcdv1.EtcdClusterStatus)

func formerPod(spec, was *etcdv1.EtcdClusterSpec, _ etcdv1.EtcdClusterStatus) { spec.Pod = was.Pod }

func formerImage(spec, was *etcdv1.EtcdClusterSpec, status etcdv1.EtcdClusterStatus) {
	spec.Image, spec.Repository = was.Image, was.Repository
	if strings.Count(spec.Version, ".") == 2 {
		formerVersion(spec, was, status)
	}
}

// formerVersion is the running one: the data may have the format of a newer release than at first.
func formerVersion(spec, _ *etcdv1.EtcdClusterSpec, status etcdv1.EtcdClusterStatus) {
	if status.Version.Current != "" {
		spec.Version = status.Version.Current
	}
}

// correct edits the spec as the message says.
func correct(all ...former) func(context.Context, *adversary, []string) error {
	return func(ctx context.Context, v *adversary, _ []string) error {
		return v.amend(ctx, func(o *etcdv1.EtcdCluster) {
			for _, give := range all {
				give(&o.Spec, &v.born, o.Status)
			}
		})
	}
}

func (v *adversary) amend(ctx context.Context, change func(*etcdv1.EtcdCluster)) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		o, err := v.object(ctx)
		if err != nil {
			return err
		}
		change(o)
		return v.api.Update(ctx, o, client.FieldOwner(v.Manager))
	})
}

func setVersion(ctx context.Context, v *adversary, words []string) error {
	return v.amend(ctx, func(o *etcdv1.EtcdCluster) { o.Spec.Version = words[1] })
}

func raiseQuota(ctx context.Context, v *adversary, _ []string) error {
	return v.amend(ctx, func(o *etcdv1.EtcdCluster) { o.Spec.Options.Quota = v.born.Options.Quota })
}

func patchStatus(ctx context.Context, v *adversary, words []string) error {
	o := &etcdv1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: v.Key.Namespace, Name: v.Key.Name}}
	return v.api.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(words[1])))
}

// deleteVolume deletes the claim of the member.
func deleteVolume(ctx context.Context, v *adversary, words []string) error {
	for _, p := range v.members(ctx) {
		if claim := claimOf(p); p.Name == words[1]+"-0" && claim != "" {
			v.remember(chaos.Manipulation{Object: chaos.PersistentVolumeClaim, Takes: chaos.PartVolume}, []string{claim})
			return v.remove1(ctx, chaos.PersistentVolumeClaim, claim)
		}
	}
	return fmt.Errorf("%s has no volume", words[1])
}

// deletePodOf deletes the pod of the member.
func deletePodOf(ctx context.Context, v *adversary, words []string) error {
	name := words[1] + "-0"
	v.remember(chaos.Manipulation{Object: chaos.Pod, Takes: chaos.PartPod}, []string{name})
	return v.remove1(ctx, chaos.Pod, name)
}

// deleteNamed deletes the objects that the message lists, such as "StatefulSet etcd-0, Pod etcd-0-0".
func deleteNamed(ctx context.Context, v *adversary, words []string) error {
	var all error
	for _, one := range strings.Split(words[1], ", ") {
		kind, name, _ := strings.Cut(one, " ")
		o, ok := kindNamed(kind)
		if !ok {
			return fmt.Errorf("%q names no object", one)
		}
		all = errors.Join(all, client.IgnoreNotFound(v.remove1(ctx, o, strings.Trim(name, `"`))))
	}
	return all
}

// deleteSets deletes the StatefulSets that the message lists, and no volume.
func deleteSets(ctx context.Context, v *adversary, words []string) error {
	var all error
	for _, name := range strings.Fields(words[1]) {
		all = errors.Join(all, client.IgnoreNotFound(v.remove1(ctx, chaos.StatefulSet, name)))
	}
	return all
}

// removeFinalizer removes the adversary's finalizer from the named object.
func removeFinalizer(ctx context.Context, v *adversary, words []string) error {
	kind, ok := kindNamed(words[1])
	if !ok {
		return fmt.Errorf("%q names no kind", words[1])
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		o := v.empty(kind, words[2])
		if err := v.api.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == chaos.ForeignFinalizer }))
		return v.api.Update(ctx, o)
	})
}

func kindNamed(name string) (chaos.Object, bool) {
	for _, kind := range restKinds {
		if kind.Kind == name {
			return kind, true
		}
	}
	return chaos.Pod, name == chaos.Pod.Kind
}

func (v *adversary) empty(kind chaos.Object, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind))
	o.SetNamespace(v.Key.Namespace)
	o.SetName(name)
	return o
}

func (v *adversary) remove1(ctx context.Context, kind chaos.Object, name string) error {
	return v.api.Delete(ctx, v.empty(kind, name), client.PropagationPolicy(metav1.DeletePropagationBackground))
}

// restoreSecrets gives every Secret the data that it had at the beginning of the round.
func restoreSecrets(ctx context.Context, v *adversary, _ []string) error {
	var all error
	for _, was := range v.secrets {
		all = errors.Join(all, retry.RetryOnConflict(retry.DefaultRetry, func() error {
			now := &corev1.Secret{}
			err := v.api.Get(ctx, client.ObjectKeyFromObject(&was), now)
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			if err != nil {
				return v.api.Create(ctx, &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: was.Namespace, Name: was.Name, Labels: was.Labels}, Type: was.Type, Data: was.Data,
				})
			}
			now.Data = was.Data
			return v.api.Update(ctx, now)
		}))
	}
	return all
}

// grantRoot runs the commands of the message as the user root.
func grantRoot(ctx context.Context, v *adversary, words []string) error {
	return v.asRoot(ctx, func(ctx context.Context, auth pb.AuthClient) error {
		_, err := auth.UserAdd(ctx, &pb.AuthUserAddRequest{Name: words[1], Options: &authpb.UserAddOptions{NoPassword: true}})
		if err != nil && !strings.Contains(err.Error(), "already exists") {
			return err
		}
		_, err = auth.UserGrantRole(ctx, &pb.AuthUserGrantRoleRequest{User: words[2], Role: "root"})
		return err
	})
}

func disableAuth(ctx context.Context, v *adversary, _ []string) error {
	return v.asRoot(ctx, func(ctx context.Context, auth pb.AuthClient) error {
		_, err := auth.AuthDisable(ctx, &pb.AuthDisableRequest{})
		return err
	})
}

// asRoot authenticates as the user root that the adversary created.
func (v *adversary) asRoot(ctx context.Context, do func(context.Context, pb.AuthClient) error) error {
	return v.anywhere(ctx, func(ctx context.Context, line *grpc.ClientConn) error {
		auth := pb.NewAuthClient(line)
		token, err := auth.Authenticate(ctx, &pb.AuthenticateRequest{Name: "root", Password: "chaos"})
		if err != nil {
			return err
		}
		return do(metadata.AppendToOutgoingContext(ctx, "token", token.Token), auth)
	})
}

// removeStray removes the member with the peer URL in the message from etcd's list.
func removeStray(ctx context.Context, v *adversary, words []string) error {
	members, err := v.list(ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		if slices.Contains(m.PeerURLs, words[1]) {
			return v.anywhere(ctx, func(ctx context.Context, line *grpc.ClientConn) error {
				_, err := pb.NewClusterClient(line).MemberRemove(ctx, &pb.MemberRemoveRequest{ID: m.ID})
				return err
			})
		}
	}
	return fmt.Errorf("no member has the URL %s", words[1])
}
