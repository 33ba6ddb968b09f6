// Package chaos is the catalogue of manipulations of an etcd cluster by anyone but the operator:
// all that Kubernetes permits with its objects, each field of the custom resource, and the admin
// commands of etcdctl. It is data.
package chaos

import (
	"slices"

	"github.com/governor-dev/governor/lifecycle/chaos"
)

// Commands of etcdctl: details of [chaos.VerbAdmin].
const (
	AdminMoveLeader    = "MoveLeader"
	AdminRespell       = "RespellURL"
	AdminMisdirect     = "MisdirectURL"
	AdminAddLearner    = "AddLearner"
	AdminAddVoter      = "AddVoter"
	AdminRemove        = "RemoveMember"
	AdminAlarm         = "RaiseNoSpace"
	AdminCorrupt       = "RaiseCorrupt"
	AdminDefragment    = "Defragment"
	AdminCompact       = "Compact"
	AdminAuthenticate  = "EnableAuth"
	AdminSnapshot      = "Snapshot"
	AdminUser          = "AddUser"
	AdminPromoteEarly  = "PromoteLearner"
	AdminLeaseAndWrite = "GrantLease"
	AdminDisarm        = "DisarmAlarms"
	AdminSteal         = "StealURL"
	AdminAuthOff       = "DisableAuth"
	AdminDowngrade     = "EnableDowngrade"
	AdminDowngradeStop = "CancelDowngrade"
)

// Server is etcd itself, through its own API.
var Server = chaos.Object{Kind: "Etcd", Scope: chaos.ScopeNode}

// Catalogue returns all manipulations of an etcd cluster, in a fixed order.
func Catalogue() chaos.Catalogue {
	return slices.Concat(
		chaos.Generate(
			pod, claim, statefulSet, chaos.Service, chaos.EndpointSlice, bootstrapConfig, chaos.Secret, chaos.PodDisruptionBudget,
			chaos.NetworkPolicy, chaos.ControllerRevision, chaos.Lease, cluster, legacy,
		),
		chaos.Pods(), chaos.Machines(), admin(), others(), chaos.Deletions(cluster), installation(),
	)
}

// Objects with a special meaning for etcd's operator.
var (
	pod = chaos.Pod.With(
		chaos.Edit{Name: "hidden", Patch: label("exposed", "false"), Sentence: "hides %s from clients by its label"},
		chaos.Edit{Name: "renamed", Patch: label("member", "etcd-0"), Sentence: "labels %s as the first member's"},
	)
	claim = chaos.PersistentVolumeClaim.With(
		chaos.Edit{Name: "renamed", Patch: label("member", "etcd-0"), Sentence: "labels %s as the first member's"},
		chaos.Edit{Name: "older", Patch: note("version", "3.4.0"), Sentence: "writes an older version into the annotation of %s"},
	)
	statefulSet = chaos.StatefulSet.With(
		chaos.Edit{Name: "renamed", Patch: label("member", "etcd-0"), Sentence: "labels %s as the first member's"},
		chaos.Edit{Name: "revision", Patch: note("revision", "chaos"), Sentence: "changes the revision in the annotation of %s"},
	)
	bootstrapConfig = chaos.ConfigMap.With(
		chaos.Edit{Name: "bootstrap", Patch: `{"data":{"bootstrap":"Bootstrap","state":"new"}}`, Sentence: "lets a member begin a cluster by %s", Unsafe: true},
		chaos.Edit{Name: "join", Patch: `{"data":{"bootstrap":"Join","state":"existing"}}`, Sentence: "lets a member join without data by %s", Unsafe: true},
		chaos.Edit{Name: "history", Patch: `{"data":{"history.json":"chaos","history":"chaos"}}`, Sentence: "overwrites the history in %s"},
	)
)

func label(key, value string) string {
	return `{"metadata":{"labels":{"etcd.database.coreos.com/` + key + `":"` + value + `"}}}`
}

func note(key, value string) string {
	return `{"metadata":{"annotations":{"etcd.database.coreos.com/` + key + `":"` + value + `"}}}`
}

func admin() chaos.Catalogue {
	command := func(detail, sentence string) chaos.Manipulation {
		return chaos.Manipulation{
			Name: "etcd-" + chaos.Dashed(detail), Actor: chaos.ActorAdministrator, Object: Server, Verb: chaos.VerbAdmin, Detail: detail,
			Sentence: "The administrator " + sentence + " with etcdctl.",
		}
	}
	remove := command(AdminRemove, "removes a member from the list")
	remove.Takes = chaos.PartVolume
	corrupt, authenticate := command(AdminCorrupt, "raises a CORRUPT alarm"), command(AdminAuthenticate, "enables authentication")
	corrupt.Lasts, authenticate.Lasts = true, true
	downgrade := command(AdminDowngrade, "permits a downgrade by a minor release")
	downgrade.Lasts = true
	return chaos.Catalogue{
		remove, corrupt, authenticate,
		command(AdminMoveLeader, "moves the leadership"),
		command(AdminRespell, "spells a member's peer URL in another way"),
		command(AdminMisdirect, "gives a member an unreachable peer URL"),
		command(AdminAddLearner, "adds a learner that never starts"),
		command(AdminAddVoter, "adds a voter that never starts"),
		command(AdminPromoteEarly, "promotes the learner that is joining"),
		command(AdminAlarm, "raises a NOSPACE alarm"),
		command(AdminDefragment, "defragments a member"),
		command(AdminCompact, "compacts all revisions"),
		command(AdminSnapshot, "takes a snapshot of a member"),
		command(AdminUser, "adds a user and a role"),
		command(AdminLeaseAndWrite, "grants a lease of one second"),
		command(AdminDisarm, "disarms all alarms"),
		command(AdminSteal, "gives a member the peer URL of another one"),
		command(AdminAuthOff, "disables authentication"),
		downgrade,
		command(AdminDowngradeStop, "cancels a downgrade"),
	}
}

// others are manipulations that Generate does not produce.
func others() chaos.Catalogue {
	return chaos.Catalogue{
		{
			Name: "secret-swap", Actor: chaos.ActorUser, Object: chaos.Secret, Verb: chaos.VerbSwap,
			Sentence: "The user exchanges the data of two Secrets.",
		},
		{
			Name: "etcdcluster-replace-v1beta2", Actor: chaos.ActorUser, Object: legacy, Verb: chaos.VerbReplace, Detail: "v1beta2",
			Sentence: "The user replaces the EtcdCluster in v1beta2, without annotations and status.",
		},
		{
			Name: "etcdcluster-replace-v1", Actor: chaos.ActorUser, Object: cluster, Verb: chaos.VerbReplace, Detail: "v1",
			Sentence: "The user replaces the EtcdCluster in v1, without annotations and status.",
		},
		{
			Name: "etcdcluster-client-apply", Actor: chaos.ActorUser, Object: cluster, Verb: chaos.VerbClientApply,
			Sentence: "The user applies the manifest of the EtcdCluster in the client, without labels and finalizers.",
		},
		status("memory", `{"status":{"memory":null}}`, "removes the memory from the status"),
		status("members", `{"status":{"members":null}}`, "removes the members from the status"),
		status("conditions", `{"status":{"conditions":null,"observedGeneration":0}}`, "removes the conditions from the status"),
	}
}

func status(name, patch, sentence string) chaos.Manipulation {
	return chaos.Manipulation{
		Name: "etcdcluster-status-" + name, Actor: chaos.ActorUser, Object: cluster, Verb: chaos.VerbPatchStatus, Detail: name, Patch: patch,
		Sentence: "The user " + sentence + " of the EtcdCluster.",
	}
}
