/** Where every pod finds what the agent mounts. */
export const MOUNT_POINT = '/.podwright';
