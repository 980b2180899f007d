/** How a machine boots from its own disk: iPXE exits, iPXE runs `sanboot`, or davit answers 404. */
export type LocalBoot = "exit" | "sanboot" | "notFound";
