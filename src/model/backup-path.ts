/** The path of the route, on the store's listener, that answers with the bytes of a backup. */
export const backupPath = "/davit/v1/backup";
