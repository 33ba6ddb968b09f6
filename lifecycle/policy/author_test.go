package policy_test

import (
	"strings"
	"testing"

	"github.com/governor-dev/governor/api/governor/v1alpha1"
	"github.com/governor-dev/governor/lifecycle/policy"
)

// Where the author may not approve, the message names the author, or says how one becomes known.
func TestAnotherUserThanTheAuthorApproves(t *testing.T) {
	rule := func(s *v1alpha1.OperationPolicySpec) {
		approving("Disruptive")(s)
		s.Approval.Approver = v1alpha1.ApproverOtherUser
	}
	set := policy.NewSet([]v1alpha1.OperationPolicy{made("p", rule)})
	if !set.WantsOtherUser() || policy.NewSet([]v1alpha1.OperationPolicy{made("p", approving("Disruptive")), made("q", nights)}).WantsOtherUser() {
		t.Error("WantsOtherUser must be true where a policy says so, and only there")
	}
	for author, want := range map[string]string{
		"ann": "needs an approval by another user than its author ann, and there is none; approve with `kubectl governor approve ring orders -n team`",
		"": "by another user than its author, who is not known, and there is none; a user claims the change with " +
			"`kubectl annotate ring orders -n team --overwrite governor.dev/author=USER governor.dev/author-generation=3`, where USER is that user's own name, and another approves with " +
			"`kubectl governor approve ring orders -n team`",
	} {
		q := question(restart)
		q.Author, q.Generation = author, 3
		if v := set.Judge(q); len(v.Refusals) != 1 || !strings.HasSuffix(v.Refusals[0].Message, want) {
			t.Errorf("author %q: got %+v", author, v.Refusals)
		}
	}
}
