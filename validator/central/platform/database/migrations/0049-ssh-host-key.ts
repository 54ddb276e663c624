/** Public host key of the SSH gateway that serves a pod. */
export const sshHostKey = (): string[] => ['alter table pods add column ssh_host_key text'];
