package envtest_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1 "github.com/governor-dev/governor/api/cache/v1alpha1"
	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/policy"
	"github.com/governor-dev/governor/test/fakeapp"
)

func sized(size int32) func(*cachev1.Memcached) {
	return func(m *cachev1.Memcached) { m.Spec.Size = size }
}

func authored(by, generation string) func(*cachev1.Memcached) {
	return func(m *cachev1.Memcached) {
		m.Annotations = map[string]string{lifecycle.AnnotationAuthor: by, lifecycle.AnnotationAuthorGeneration: generation}
	}
}

func unrecorded(m *cachev1.Memcached) { m.Annotations = nil }

// author fails unless the API server has that author on record for the Memcached as it is.
func author(t *testing.T, namespace, want string) {
	t.Helper()
	m, err := get(t, &cachev1.Memcached{}, namespace, "m")
	must(t, err)
	if got := lifecycle.AuthorOf(m); got != want {
		t.Errorf("the author of generation %d is %q, want %q: %v", m.Generation, got, want, m.Annotations)
	}
}

// recorded waits until the API server records who changes the spec.
func recorded(t *testing.T, namespace, user string) {
	t.Helper()
	size := int32(2)
	eventually(t, "authors are recorded", func() error {
		size++
		if err := change(t, namespace, user, sized(size)); err != nil {
			return err // the API server has not read the definition yet
		}
		m, err := get(t, &cachev1.Memcached{}, namespace, "m")
		if err == nil && lifecycle.AuthorOf(m) != user {
			err = fmt.Errorf("the annotations are %v", m.Annotations)
		}
		return err
	})
}

// The API server records who changed the spec last, and no user can write the name of another there.
func TestTheAuthorOfAChangeIsRecorded(t *testing.T) {
	namespace := tenants(t, func(*cachev1.Memcached) {})
	applied(t, "../../config/manager/author.yaml")
	applied(t, "../../examples/authors.yaml")
	recorded(t, namespace, "bob")
	must(t, change(t, namespace, "carol", func(m *cachev1.Memcached) { m.Labels = map[string]string{"a": "b"} }))
	author(t, namespace, "bob")
	must(t, change(t, namespace, "carol", unrecorded))
	author(t, namespace, "bob")
	must(t, change(t, namespace, "bob", authored("carol", "9")))
	author(t, namespace, "bob")
	must(t, change(t, namespace, "bob", func(m *cachev1.Memcached) { sized(20)(m); authored("carol", "9")(m) }))
	author(t, namespace, "bob")
	must(t, change(t, namespace, "carol", func(m *cachev1.Memcached) { sized(21)(m); unrecorded(m) }))
	author(t, namespace, "carol")
	must(t, change(t, namespace, "bob", authored("bob", "")))
	author(t, namespace, "bob")
	m, err := get(t, &cachev1.Memcached{}, namespace, "m")
	must(t, err)
	must(t, api.SubResource("scale").Update(t.Context(), m, client.WithSubResourceBody(&autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"}, Spec: autoscalingv1.ScaleSpec{Replicas: 9},
	})))
	author(t, namespace, "")
	must(t, change(t, namespace, "bob", authored("bob", "0")))
	author(t, namespace, "bob")
}

// Without the policy that records, the one that validates refuses the name of another.
func TestNoUserWritesTheNameOfAnother(t *testing.T) {
	namespace := tenants(t, func(*cachev1.Memcached) {})
	applied(t, "../../config/manager/author.yaml")
	forbids(t, namespace, "bob", authored("carol", "1"), `they must be "bob" and "1", or be left out`)
	forbids(t, namespace, "bob", authored("bob", "2"), `they must be "bob" and "1"`)
	allows(t, namespace, "bob", authored("bob", "1"))
	allows(t, namespace, "carol", sized(2))
	author(t, namespace, "")
}

// A restore of a backup creates an object with the records of an earlier one, which takes the right to pass policies.
func TestARestoreKeepsItsRecords(t *testing.T) {
	namespace := tenants(t, func(*cachev1.Memcached) {})
	applied(t, "../../config/manager/author.yaml")
	backup := func() *cachev1.Memcached {
		m := &cachev1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "restored"}, Spec: cachev1.MemcachedSpec{Size: 1, ContainerPort: 11211}}
		authored("carol", "7")(m)
		m.Annotations[lifecycle.AnnotationBypass], m.Annotations[lifecycle.AnnotationBypassBy] = "INC-1", "carol"
		return m
	}
	eventually(t, "a user without the right is refused", func() error {
		if err := asUser(t, "bob").Create(t.Context(), backup(), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
	bind(t, namespace, "bypass", bypassRole, "bob")
	eventually(t, "a user with the right restores", func() error { return asUser(t, "bob").Create(t.Context(), backup()) })
	forbids(t, namespace, "bob", authored("carol", "1"), `they must be "bob"`)
}

// Where a policy wants another user, the author's own approval lets nothing pass.
func TestTheAuthorCannotApprove(t *testing.T) {
	namespace, _, _ := clocked(t, "r")
	newPolicy(t, namespace, "words", func(s *v1alpha1.OperationPolicySpec) {
		words(s)
		s.Approval.Approver = v1alpha1.ApproverOtherUser
	})
	resize(t, namespace, "r", func(s *fakeapp.Spec) { s.Size = 2 })
	ringHeld(t, namespace, "r", "by another user than its author, who is not known")
	early := approve(t, approvalOf(t, namespace, "early", "m000002"))
	approvalIs(t, early, metav1.ConditionFalse, policy.ReasonAuthorUnknown)
	must(t, answersFor(t, namespace, "ann"))
	approvalIs(t, early, metav1.ConditionFalse, policy.ReasonApproverIsAuthor)
	ringHeld(t, namespace, "r", "by another user than its author ann", `the approval "early" is not valid (ApproverIsAuthor)`)
	other := approvalOf(t, namespace, "other", "m000002")
	other.Spec.Approver = "bob"
	approve(t, other)
	ringSettles(t, namespace, "r", 2)
	var by []string
	for _, e := range bookOf(t, namespace, "r").Entries {
		if e.Step.Name == "Remove" && e.Approval != nil {
			by = append(by, e.Approval.By)
		}
	}
	if !slices.Equal(by, []string{"bob"}) {
		t.Errorf("the history names %v as approvers", by)
	}
}

// answersFor puts the user's own name into the record of the ring.
func answersFor(t *testing.T, namespace, user string) error {
	t.Helper()
	r, err := get(t, &fakeapp.Ring{}, namespace, "r")
	must(t, err)
	base := r.DeepCopyObject().(*fakeapp.Ring)
	r.Annotations = map[string]string{lifecycle.AnnotationAuthor: user, lifecycle.AnnotationAuthorGeneration: strconv.FormatInt(r.Generation, 10)}
	if err := as(t, user).Patch(t.Context(), r, client.MergeFrom(base)); err != nil {
		return err
	}
	if lifecycle.AuthorOf(r) != user {
		return fmt.Errorf("the annotations are %v", r.Annotations)
	}
	return nil
}
