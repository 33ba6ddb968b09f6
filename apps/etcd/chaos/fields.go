package chaos

import (
	"slices"

	"github.com/governor-dev/governor/lifecycle/chaos"
)

// cluster is the custom resource: each field with valid values, values at the limit, and values
// beyond it, which the API server must reject.
var cluster = chaos.Object{
	Kind: "EtcdCluster", APIVersion: "etcd.database.coreos.com/v1", Scope: chaos.ScopeInstance, Custom: true,
	Edits: slices.Concat(general, storage, security, options, pods, timing),
}

// Edits of the spec by its parts.
var (
	general = []chaos.Edit{
		spec("size-1", `{"size":1}`, "scales %s to one"),
		spec("size-2", `{"size":2}`, "scales %s to two"),
		spec("size-3", `{"size":3}`, "scales %s to three"),
		spec("size-4", `{"size":4}`, "scales %s to four"),
		spec("size-5", `{"size":5}`, "scales %s to five"),
		undone("size-9", `{"size":9}`, "scales %s to nine, the most"),
		refused("size-0", `{"size":0}`, "scales %s to zero"),
		refused("size-10", `{"size":10}`, "scales %s to ten"),
		spec("version-next", `{"version":"3.7"}`, "upgrades %s"),
		undone("version-back", `{"version":"3.5"}`, "downgrades %s by a minor release, which is impossible"),
		undone("version-unknown", `{"version":"3.99"}`, "gives %s a release that does not exist"),
		undone("version-unavailable", `{"version":"3.6.99"}`, "gives %s a patch release that no registry has"),
		refused("version-odd", `{"version":"latest"}`, "gives %s an invalid version"),
		undone("image", `{"repository":"chaos.governor.dev/none"}`, "takes the images of %s from a registry that does not exist"),
		undone("image-own", `{"version":"3.6","image":"chaos.governor.dev/none:none"}`, "gives %s an image that does not exist"),
		refused("image-both", `{"version":"3.6","image":"a","repository":"b"}`, "gives %s an image and a repository"),
		undone("paused", `{"paused":true}`, "pauses %s"),
		refused("domain", `{"clusterDomain":"cluster.local"}`, "adds a cluster domain to %s"),
		spec("rebalance", `{"rebalance":"Automatic"}`, "permits the members of %s to move to better nodes"),
	}
	storage = []chaos.Edit{
		spec("storage-grow", `{"storage":{"size":"2Gi"}}`, "grows the volumes of %s"),
		refused("storage-shrink", `{"storage":{"size":"64Mi"}}`, "shrinks the volumes of %s"),
		refused("storage-least", `{"storage":{"size":"63Mi"}}`, "gives %s smaller volumes than etcd needs"),
		refused("storage-memory", `{"storage":{"medium":"Memory"}}`, "moves %s into memory"),
		refused("storage-class", `{"storage":{"storageClassName":"none"}}`, "gives %s another storage class"),
		spec("retention-delete", `{"storage":{"retention":"Delete"}}`, "gives the volumes of %s to the garbage collector"),
		spec("retention-retain", `{"storage":{"retention":"Retain"}}`, "retains the volumes of %s"),
	}
	security = []chaos.Edit{
		refused("tls-other", `{"tls":{"mode":"Secrets","secrets":{"peer":"none","server":"none","client":"none"}}}`, "changes the TLS mode of %s"),
		spec("revoke-past", `{"tls":{"revokeBefore":"2020-01-01T00:00:00Z"}}`, "revokes the authorities of %s from before it existed"),
		spec("revoke-now", `{"tls":{"revokeBefore":"$NOW"}}`, "revokes the present authority of %s"),
		spec("revoke-future", `{"tls":{"revokeBefore":"2099-01-01T00:00:00Z"}}`, "revokes the authorities of %s at a time in the future"),
		spec("network-policy", `{"networkPolicy":{"enabled":true}}`, "protects %s by a NetworkPolicy"),
		spec("network-policy-off", `{"networkPolicy":null}`, "removes the NetworkPolicy of %s"),
		// The oracle is a client from outside: an address admits it.
		spec("network-policy-clients", `{"networkPolicy":{"enabled":true,"clients":[{"ipBlock":{"cidr":"0.0.0.0/0"}},{"podSelector":{"matchLabels":{"chaos.governor.dev/none":"true"}}}]}}`, "names the clients of %s"),
		refused("network-policy-off-clients", `{"networkPolicy":{"enabled":false,"clients":[{"podSelector":{}}]}}`, "names the clients of %s without a NetworkPolicy"),
	}
	options = []chaos.Edit{
		undone("quota-least", `{"options":{"quota":"16Mi"}}`, "gives %s the smallest quota"),
		spec("quota-most", `{"options":{"quota":"8Gi"}}`, "gives %s the largest quota"),
		refused("quota-less", `{"options":{"quota":"15Mi"}}`, "gives %s less than the smallest quota"),
		refused("quota-more", `{"options":{"quota":"9Gi"}}`, "gives %s more than the largest quota"),
		spec("snapshots-1", `{"options":{"snapshotCount":1}}`, "makes %s write a snapshot after every entry"),
		refused("snapshots-less", `{"options":{"snapshotCount":-1}}`, "gives %s a negative number of entries between snapshots"),
		spec("compaction", `{"options":{"compactionMode":"Revision","compactionRetention":"10"}}`, "makes %s compact all but ten revisions"),
		spec("compaction-time", `{"options":{"compactionMode":"Periodic","compactionRetention":"1s"}}`, "makes %s compact what is older than a second"),
		refused("compaction-odd", `{"options":{"compactionMode":"Revision","compactionRetention":"soon"}}`, "gives %s an invalid retention"),
	}
	pods = []chaos.Edit{
		spec("annotations", `{"pod":{"annotations":{"chaos.governor.dev/at":"1"}}}`, "adds an annotation to the pods of %s"),
		spec("labels", `{"pod":{"labels":{"chaos.governor.dev/at":"1","etcd.database.coreos.com/member":"etcd-0"}}}`, "adds labels to the pods of %s, one of them the operator's"),
		spec("grace-1", `{"pod":{"terminationGracePeriodSeconds":1}}`, "gives the pods of %s a second to end"),
		spec("grace-600", `{"pod":{"terminationGracePeriodSeconds":600}}`, "gives the pods of %s ten minutes to end"),
		refused("grace-0", `{"pod":{"terminationGracePeriodSeconds":0}}`, "gives the pods of %s no time to end"),
		refused("grace-601", `{"pod":{"terminationGracePeriodSeconds":601}}`, "gives the pods of %s more than ten minutes to end"),
		spec("env", `{"pod":{"env":[{"name":"ETCD_HEARTBEAT_INTERVAL","value":"150"}]}}`, "sets the environment of %s"),
		refused("env-reserved", `{"pod":{"env":[{"name":"ETCD_NAME","value":"x"}]}}`, "sets what the operator decides in the environment of %s"),
		spec("args", `{"pod":{"args":["--election-timeout=1500"]}}`, "sets a flag of %s"),
		undone("args-wrong", `{"pod":{"args":["--no-such-flag=1"]}}`, "gives %s a flag that etcd does not know"),
		refused("args-reserved", `{"pod":{"args":["--force-new-cluster"]}}`, "gives %s a flag that the operator decides"),
		undone("resources-huge", `{"pod":{"resources":{"requests":{"cpu":"500"}}}}`, "asks for more than a node has for the pods of %s"),
		undone("node-selector", `{"pod":{"nodeSelector":{"chaos.governor.dev/none":"true"}}}`, "binds the pods of %s to a node that does not exist"),
		undone("affinity", `{"pod":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"chaos.governor.dev/none","operator":"Exists"}]}]}}}}}`, "gives %s an affinity that no node satisfies"),
		spec("affinity-none", `{"pod":{"affinity":{}}}`, "gives %s no affinity at all"),
		spec("tolerations", `{"pod":{"tolerations":[{"operator":"Exists"}]}}`, "has the pods of %s tolerate every taint"),
		spec("spread", `{"pod":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"ScheduleAnyway","labelSelector":{"matchLabels":{"app.kubernetes.io/instance":"etcd"}}}]}}`, "spreads the pods of %s over nodes"),
		undone("spread-none", `{"pod":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"chaos.governor.dev/none","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app.kubernetes.io/instance":"etcd"}}}]}}`, "spreads the pods of %s over domains that do not exist"),
		undone("priority-none", `{"pod":{"priorityClassName":"chaos-none"}}`, "gives the pods of %s a priority class that does not exist"),
		spec("priority", `{"pod":{"priorityClassName":"system-cluster-critical"}}`, "gives the pods of %s a high priority"),
		undone("service-account-none", `{"pod":{"serviceAccountName":"chaos-none"}}`, "gives the pods of %s a ServiceAccount that does not exist"),
		spec("service-account", `{"pod":{"serviceAccountName":"default"}}`, "names the ServiceAccount of the pods of %s"),
		spec("security-context", `{"pod":{"securityContext":{"runAsUser":10001,"runAsGroup":10001,"fsGroup":10001,"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}}}`, "declares the security context of %s"),
		undone("security-context-root", `{"pod":{"securityContext":{"runAsUser":0,"runAsNonRoot":true}}}`, "gives %s a security context that contradicts itself"),
		spec("pull-secrets", `{"pod":{"imagePullSecrets":[{"name":"chaos-none"}]}}`, "gives the pods of %s a pull Secret that does not exist"),
	}
	timing = []chaos.Edit{
		spec("replace-after", `{"replaceAfter":"30s"}`, "makes %s replace silent members soon"),
		spec("replace-after-most", `{"replaceAfter":"168h"}`, "makes %s wait a week for silent members"),
		refused("replace-after-less", `{"replaceAfter":"29s"}`, "makes %s replace silent members too soon"),
		refused("replace-after-more", `{"replaceAfter":"169h"}`, "makes %s wait more than a week for silent members"),
	}
)

// legacy is the custom resource as a client of the older API sees it.
var legacy = chaos.Object{
	Kind: "EtcdCluster", APIVersion: "etcd.database.coreos.com/v1beta2", Scope: chaos.ScopeInstance, Custom: true, Prefix: "legacy-",
	Edits: []chaos.Edit{
		spec("size-1", `{"size":1}`, "scales %s to one, in v1beta2"),
		spec("size-3", `{"size":3}`, "scales %s to three, in v1beta2"),
		spec("size-5", `{"size":5}`, "scales %s to five, in v1beta2"),
		spec("version-next", `{"version":"3.7.3"}`, "upgrades %s, in v1beta2"),
		spec("annotations", `{"pod":{"annotations":{"chaos.governor.dev/at":"2"}}}`, "adds an annotation to the pods of %s, in v1beta2"),
		refused("tls", `{"TLS":{"static":{"member":{"peerSecret":"none"}}}}`, "adds Secrets to %s in v1beta2"),
		refused("size-0", `{"size":0}`, "scales %s to zero, in v1beta2"),
		undone("paused", `{"paused":true}`, "pauses %s, in v1beta2"),
	},
}

func spec(name, patch, sentence string) chaos.Edit {
	return chaos.Edit{Name: name, Patch: `{"spec":` + patch + `}`, Sentence: sentence, Safe: name == "annotations"}
}

// undone is an edit that works only after the user reverts it.
func undone(name, patch, sentence string) chaos.Edit {
	e := spec(name, patch, sentence)
	e.Undone = true
	return e
}

// refused is an edit that the API server must refuse.
func refused(name, patch, sentence string) chaos.Edit {
	e := spec(name, patch, sentence+", which is refused")
	e.Refused = true
	return e
}
