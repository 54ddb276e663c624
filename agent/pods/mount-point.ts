/** Where every pod finds what the agent mounts. */
export const MOUNT_POINT = '/.podwright';
/** Where a pod with an SSH server of its own finds its folder of keys. */
export const KEYS_MOUNT_POINT = `${MOUNT_POINT}/ssh`;
/** One key per line, replaced whole whenever the keys change. */
export const AUTHORIZED_KEYS_FILE = `${KEYS_MOUNT_POINT}/authorized_keys`;
