/** Where a central API keeps its files unless it is told otherwise; who reads its database from outside looks there too. */
export const DEFAULT_CENTRAL_HOME = '/var/lib/podwright-central';
